package dev.tutti.gloo.shm;

import dev.tutti.cpu.wait.FutexWaiters;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeoutException;

/**
 * One rank's view of the memory that the ranks of a host share, and its means of waiting for them.
 */
public final class ShmChannel implements AutoCloseable {
  /*
   * Every rank runs the same operations in the same order, and each operation takes the same number
   * of steps on every rank. Step numbers only grow. In a step a rank may fill its stage and
   * announce it (published), may reduce data that others staged (reduced), and announces when it no
   * longer needs anything of the step (finished). A stage is reused DEPTH steps later, after all
   * ranks have finished. All words of a rank's control line are written by that rank alone, with
   * release, and read by the others with acquire: a rank that reads a word sees everything written
   * before it.
   *
   * Small messages have two slots of their own for each rank. The operations that use slots
   * alternate between the two, and store a number in the line of the slot's first bytes. Such an
   * operation ends on a rank when all ranks have filled their slots. A rank that fills slot n has
   * therefore seen all others fill slot n - 1. They have then read all of slot n - 2, whose place
   * it takes.
   *
   * Each operation has a signature. It is stored beside the words that say that a slot or stage is
   * filled. It is also stored in the control line, alternating between two places, so that a rank
   * that waits for long sees when another one is in the same operation with different arguments.
   */
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  /**
   * How long a rank waits for another one before it also checks for itself whether that rank has
   * ended.
   */
  static final long WATCH_NANOS = 1_000_000_000;

  private static final long YIELD_NANOS = 2_000_000;
  private static final long FIRST_SLEEP_NANOS = 20_000;
  private static final long LONGEST_SLEEP_NANOS = 1_000_000;

  final ShmLayout layout;
  public final int rank;
  public final int size;
  final MemorySegment memory;
  private final ShmFile file;
  private final Endpoint transport;
  private final FutexWaiters waiters;
  private final WaitStrategy strategy;
  private final long ownControl;
  private final MemorySegment[][] stages;
  private final MemorySegment[][] slots;
  private long operation;
  private long signature;
  private long slot;
  private long step;

  /** The last step of the operations before this one. */
  private long before;

  /** The last step that all ranks are known to have finished. */
  private long finished;

  /**
   * Creates the view of a rank.
   *
   * @param file the mapped memory
   * @param layout the layout of the memory
   * @param transport connects the ranks of the host, and holds which have been lost
   * @param spinNanos how long to poll before yielding the core; 0 if ranks outnumber cores
   */
  public ShmChannel(ShmFile file, ShmLayout layout, Endpoint transport, long spinNanos) {
    this(file, layout, transport, waitStrategy(spinNanos, file.time()));
  }

  ShmChannel(ShmFile file, ShmLayout layout, Endpoint transport, WaitStrategy strategy) {
    this.file = file;
    this.memory = file.segment();
    this.layout = layout;
    this.transport = transport;
    rank = transport.rank();
    size = transport.size();
    waiters = new FutexWaiters(memory, ShmLayout.waiters(size), file.time());
    this.strategy = strategy;
    ownControl = layout.control(rank);
    stages = new MemorySegment[ShmLayout.DEPTH][size];
    slots = new MemorySegment[2][size];
    for (int r = 0; r < size; r++) {
      for (int i = 0; i < ShmLayout.DEPTH; i++) {
        stages[i][r] = memory.asSlice(layout.stage(r, i), layout.stageBytes());
      }
      for (int i = 0; i < 2; i++) {
        slots[i][r] =
            memory.asSlice(layout.slot(r, i) + ShmLayout.SLOT_HEADER, ShmLayout.SLOT_BYTES);
      }
    }
  }

  /** Enters the next operation, for which all ranks must have the same signature. */
  public void enter(long newSignature) {
    signature = newSignature;
    before = step;
    operation++;
    memory.set(
        ValueLayout.JAVA_LONG,
        ownControl + ShmLayout.SIGNATURES + 8 * (operation & 1),
        newSignature);
    WORD.setRelease(memory, ownControl + ShmLayout.OPERATION, operation);
  }

  // Small messages

  /**
   * Begins to use slots; returns the slots of all ranks, in rank order, of which this rank may fill
   * only its own.
   */
  MemorySegment[] beginSlots() {
    return slots[(int) (++slot & 1)];
  }

  /** Shows this rank's slot to the others. */
  void publishSlot() {
    long offset = layout.slot(rank, (int) (slot & 1));
    memory.set(ValueLayout.JAVA_LONG, offset + 8, signature);
    show(offset, slot);
  }

  /** Waits until the slots of all ranks are filled. */
  void awaitSlots(Operation op) throws Exception {
    int parity = (int) (slot & 1);
    for (int i = 1; i < size; i++) {
      int peer = rank + i < size ? rank + i : rank + i - size;
      long offset = layout.slot(peer, parity);
      if ((long) WORD.getAcquire(memory, offset) < slot) {
        await(op, peer, offset, slot);
      }
      checkSignature(peer, offset + 8);
    }
    // A rank that fills a slot in this operation has completed the earlier ones.
    finished = Math.max(finished, before);
  }

  /** Returns whether a word is nonzero in the slots of all ranks. */
  static boolean areAllSet(MemorySegment[] slots, long word) {
    for (MemorySegment each : slots) {
      if (each.getAtIndex(ValueLayout.JAVA_LONG, word) == 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Waits until all ranks are in this operation, and checks that it is the same on all: for
   * operations in which some ranks would otherwise receive nothing from others.
   */
  public void agree(Operation op) throws Exception {
    beginSlots();
    publishSlot();
    awaitSlots(op);
  }

  // Large messages

  /** Begins the next step; returns when this rank may fill its stage. */
  void beginStep(Operation op) throws Exception {
    step++;
    long free = step - ShmLayout.DEPTH;
    if (free <= finished) {
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      awaitWord(op, peer, ShmLayout.FINISHED, free);
    }
    finished = free;
  }

  /** Begins steps in which no stage is filled; returns the number of the first one. */
  long advance(long steps) {
    long first = step + 1;
    step += steps;
    return first;
  }

  /** Returns the memory of all ranks' stages in a step, in rank order. */
  MemorySegment[] stages(long ofStep) {
    return stages[(int) (ofStep % ShmLayout.DEPTH)];
  }

  /** Returns the number of the step begun most recently. */
  long step() {
    return step;
  }

  /** Announces that this rank's stage is filled, up to the given step. */
  void publish(long ofStep) {
    long index = ofStep % ShmLayout.DEPTH;
    memory.set(ValueLayout.JAVA_LONG, ownControl + ShmLayout.STAGED + 8 * index, signature);
    show(ownControl + ShmLayout.PUBLISHED, ofStep);
  }

  /** Announces that this rank has reduced its part, up to the given step. */
  void reduced(long ofStep) {
    show(ownControl + ShmLayout.REDUCED, ofStep);
  }

  /** Announces that this rank no longer needs anything of the others, up to the given step. */
  void finish(long ofStep) {
    show(ownControl + ShmLayout.FINISHED, ofStep);
  }

  private void show(long offset, long value) {
    WORD.setRelease(memory, offset, value);
    waiters.wake(offset);
  }

  /** Waits until a rank's stage is filled. */
  void awaitPublished(Operation op, int peer, long ofStep) throws Exception {
    awaitWord(op, peer, ShmLayout.PUBLISHED, ofStep);
    checkSignature(peer, layout.control(peer) + ShmLayout.STAGED + 8 * (ofStep % ShmLayout.DEPTH));
  }

  /** Waits until all ranks' stages are filled. */
  void awaitAllPublished(Operation op, long ofStep) throws Exception {
    for (int i = 1; i < size; i++) {
      awaitPublished(op, (rank + i) % size, ofStep);
    }
  }

  /** Waits until a rank has reduced its part. */
  void awaitReduced(Operation op, int peer, long ofStep) throws Exception {
    awaitWord(op, peer, ShmLayout.REDUCED, ofStep);
  }

  private void awaitWord(Operation op, int peer, int word, long value) throws Exception {
    long offset = layout.control(peer) + word;
    if ((long) WORD.getAcquire(memory, offset) < value) {
      await(op, peer, offset, value);
    }
  }

  Time time() {
    return file.time();
  }

  /** Returns how a thread waits for a word that another rank changes. */
  static WaitStrategy waitStrategy(long spinNanos, Time time) {
    return new WaitStrategy(spinNanos, YIELD_NANOS, FIRST_SLEEP_NANOS, LONGEST_SLEEP_NANOS, time);
  }

  private void await(Operation op, int peer, long offset, long value) throws Exception {
    if (polled(offset, value)) {
      return;
    }
    long deadline = op.deadlineNanos();
    strategy.start();
    boolean interrupted = false;
    try {
      do {
        if (strategy.isCheckDue()) {
          check(op, peer, offset, value, deadline);
        }
        long seen = (long) WORD.getAcquire(memory, offset);
        if (seen >= value) {
          return;
        }
        strategy.rest(waiters, offset, seen);
        // An interrupted thread would no longer sleep.
        interrupted |= Thread.interrupted();
      } while (!polled(offset, value));
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean polled(long offset, long value) {
    for (int i = strategy.polls(); i > 0; i--) {
      if ((long) WORD.getAcquire(memory, offset) >= value) {
        return true;
      }
      Thread.onSpinWait();
    }
    return false;
  }

  /** Throws if further waiting is pointless. */
  private void check(Operation op, int peer, long offset, long value, long deadline)
      throws Exception {
    long control = layout.control(peer);
    if ((long) WORD.getAcquire(memory, control + ShmLayout.OPERATION) == operation) {
      long theirs =
          (long) WORD.getAcquire(memory, control + ShmLayout.SIGNATURES + 8 * (operation & 1));
      if (theirs != signature
          && (long) WORD.getAcquire(memory, control + ShmLayout.OPERATION) == operation) {
        throw mismatch(peer, theirs);
      }
    }
    if (strategy.elapsed() > WATCH_NANOS) {
      transport.watch(peer);
    }
    Throwable failure = transport.failureOf(peer);
    if (failure != null && (long) WORD.getAcquire(memory, offset) < value) {
      throw failure instanceof Exception exception ? exception : new IllegalStateException(failure);
    }
    op.throwIfFailed();
    if (strategy.now() - deadline >= 0) {
      throw new TimeoutException(
          "rank "
              + transport.rankInGroup(rank)
              + ": rank "
              + transport.rankInGroup(peer)
              + " did not reach "
              + Signature.describe(signature)
              + " in time");
    }
  }

  /**
   * Ends an operation at its deadline even if nothing is being waited for.
   *
   * @throws TimeoutException if the deadline has passed
   */
  void throwIfOver(Operation op) throws TimeoutException {
    op.throwIfFailed();
    if (file.time().nanoTime() - op.deadlineNanos() >= 0) {
      throw new TimeoutException(
          "rank "
              + transport.rankInGroup(rank)
              + " did not complete "
              + Signature.describe(signature)
              + " in time");
    }
  }

  /** Returns the exception to throw if the memory of a rank's tensors can no longer be read. */
  PeerLostException unreadable(int peer) {
    int lost = transport.rankInGroup(peer);
    return new PeerLostException(
        lost,
        "rank " + transport.rankInGroup(rank) + ": can no longer read the memory of rank " + lost,
        transport.failureOf(peer));
  }

  private PeerMismatchException mismatch(int peer, long theirs) {
    return Signature.mismatch(
        transport.rankInGroup(rank), signature, transport.rankInGroup(peer), theirs);
  }

  private void checkSignature(int peer, long offset) {
    long theirs = memory.get(ValueLayout.JAVA_LONG, offset);
    if (theirs != signature) {
      throw mismatch(peer, theirs);
    }
  }

  /** Releases the memory; no thread may be in an operation. */
  @Override
  public void close() {
    file.close();
  }
}
