package dev.tutti.gloo.shm;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.transport.cma.RemoteHeap;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.spi.Operation;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Reads the tensors of the ranks of a host from where they are: tensors that Tutti allocated are
 * read in memory that all ranks map, and others through system calls, if the system lets every rank
 * read every other one.
 */
final class HostReads implements AutoCloseable {
  /*
   * The ranks find out together which of these are possible, in the first operation that needs the
   * answer. Each rank shows its process, its heap and the address of a random number in it. It then
   * tries to map the others' heaps and read their numbers, and shows whether that succeeded. All
   * ranks thus reach the same conclusion.
   *
   * While a rank is in such an operation, the others may read its tensors. It leaves the operation
   * normally only after all ranks have confirmed that they have read what they need. If it leaves
   * in any other way, it first changes its number. The others check that number after each read, so
   * that none of them takes bytes written later for the rank's data. Memory that the program frees
   * meanwhile, against the rules, keeps its content until then only in the rank's heap; reads
   * through the system return whatever is there.
   */
  /**
   * The minimum size in bytes of an operation's longest part for which reading is worth its two
   * rounds.
   */
  static final long LEAST_BYTES = 256 * 1024;

  /**
   * The minimum size in bytes of a part for which reading is worth its round if all heaps are
   * mapped.
   */
  static final long LEAST_MAPPED = SharedHeap.LEAST_BYTES;

  private static final int VIEWS = 16;
  private static final int PLACE_SHIFT = 16;
  private static final long SLICE = 4 << 20;
  private static final Logger LOG = System.getLogger(HostReads.class.getName());

  /** Whether this process has reported that it would be faster with native access. */
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final ShmChannel channel;
  private final boolean allowed;
  private final boolean forbidden;
  private final boolean mayMap;
  private MemorySegment number = MemorySegment.NULL;
  private @Nullable RemoteMemory @Nullable [] memories;
  private @Nullable RemoteHeap @Nullable [] heaps;
  private @Nullable SharedHeap lender;
  private boolean met;
  private long value;
  private int loan;

  /**
   * The most recent views, several for each rank, so that repeated operations on the same tensors
   * create none.
   */
  private final @Nullable MemorySegment[] views;

  /**
   * Creates an instance that does not read anything yet.
   *
   * @param channel connects the ranks
   * @param wanted whether this rank reads and is read if the system and the JVM allow it
   * @param mayMap whether tensors may be mapped for this
   */
  HostReads(ShmChannel channel, boolean wanted, boolean mayMap) {
    this.channel = channel;
    this.allowed = wanted && RemoteMemory.isAllowed();
    this.forbidden = wanted && RemoteMemory.isForbidden();
    this.mayMap = allowed && mayMap;
    views = new @Nullable MemorySegment[channel.size * VIEWS];
  }

  /**
   * Returns whether all ranks can read each other's memory; all ranks call this at the same point
   * of an operation.
   *
   * @throws Exception if a wait for another rank fails
   */
  boolean areOpen(Operation op) throws Exception {
    meet(op);
    return memories != null;
  }

  /**
   * Returns whether all ranks can see each other's heaps; all ranks call this at the same point of
   * an operation.
   *
   * @throws Exception if a wait for another rank fails
   */
  boolean areMapped(Operation op) throws Exception {
    meet(op);
    return heaps != null;
  }

  private void meet(Operation op) throws Exception {
    if (met) {
      return;
    }
    if (forbidden && channel.rank == 0 && TOLD.compareAndSet(false, true)) {
      LOG.log(
          Level.INFO,
          "large tensors are copied twice between the ranks of this host; start java with"
              + " --enable-native-access=ALL-UNNAMED to let ranks read each other's tensors in"
              + " place");
    }
    SharedHeap heap = mayMap ? SharedHeap.ofProcess().orElse(null) : null;
    value = channel.time().random();
    number = RemoteHeap.words(heap, Long.BYTES);
    number.set(ValueLayout.JAVA_LONG, 0, value);
    long process = allowed ? ProcessHandle.current().pid() : 0;
    MemorySegment[] slots = channel.beginSlots();
    set(slots, 0, process);
    set(slots, 1, number.address());
    set(slots, 2, value);
    RemoteHeap.Place.show(heap, slots[channel.rank], 3);
    channel.publishSlot();
    channel.awaitSlots(op);
    @Nullable RemoteHeap[] mapped = new @Nullable RemoteHeap[channel.size];
    try {
      open(op, slots, mapped, process > 0, heap != null);
    } finally {
      if (heaps == null) {
        close(mapped);
      }
    }
  }

  /** Tries to read and map the memory of the other ranks, and finds out which ranks can. */
  private void open(
      Operation op,
      MemorySegment[] slots,
      @Nullable RemoteHeap[] mapped,
      boolean mayRead,
      boolean hasHeap)
      throws Exception {
    boolean mappable = hasHeap;
    for (int peer = 0; mappable && peer < channel.size; peer++) {
      RemoteHeap.Place place = RemoteHeap.Place.read(get(slots, peer, 0), slots[peer], 3);
      mapped[peer] = RemoteHeap.map(place, get(slots, peer, 1), get(slots, peer, 2));
      mappable = mapped[peer] != null;
    }
    @Nullable RemoteMemory[] found = new @Nullable RemoteMemory[channel.size];
    boolean readable = mayRead;
    for (int peer = 0; peer < channel.size; peer++) {
      long theirs = get(slots, peer, 0);
      readable &= theirs > 0 && theirs <= Integer.MAX_VALUE;
      if (readable && peer != channel.rank) {
        long address = get(slots, peer, 1);
        RemoteMemory memory = new RemoteMemory((int) theirs, address, get(slots, peer, 2));
        found[peer] = memory;
        readable = memory.read(address, number, 0, 0);
      }
    }
    MemorySegment[] results = channel.beginSlots();
    set(results, 0, readable ? 1 : 0);
    set(results, 1, mappable ? 1 : 0);
    channel.publishSlot();
    channel.awaitSlots(op);
    for (int peer = 0; peer < channel.size; peer++) {
      readable &= get(results, peer, 0) == 1;
      mappable &= get(results, peer, 1) == 1;
    }
    memories = readable ? found : null;
    heaps = mappable ? mapped : null;
    met = true;
  }

  private RemoteHeap heap(int peer) {
    return Objects.requireNonNull(Objects.requireNonNull(heaps)[peer]);
  }

  /**
   * Returns mapped memory of another rank, for reading.
   *
   * @param peer the rank
   * @param address the address in its process
   * @param bytes the length in bytes
   * @throws IllegalArgumentException if the memory is not in that rank's heap
   */
  MemorySegment view(int peer, long address, long bytes) {
    RemoteHeap theirs = heap(peer);
    if (!theirs.has(address, bytes)) {
      throw new IllegalArgumentException(
          "rank " + peer + " offered " + bytes + " bytes that are not in its memory");
    }
    int place = peer * VIEWS + (int) ((address >>> PLACE_SHIFT) % VIEWS);
    MemorySegment view = views[place];
    long first = theirs.memory().address() + (address - theirs.address());
    if (view == null || view.address() != first || view.byteSize() != bytes) {
      view = theirs.slice(address, bytes);
      views[place] = view;
    }
    return view;
  }

  /**
   * Verifies that everything read from the others' heaps so far is what they lent.
   *
   * @throws Exception if a rank has left the operation
   */
  void checkAll() throws Exception {
    for (int peer = 0; peer < channel.size; peer++) {
      if (peer != channel.rank) {
        check(peer);
      }
    }
  }

  /** Verifies this for one rank. */
  void check(int peer) throws Exception {
    if (!heap(peer).isIntact()) {
      throw channel.unreadable(peer);
    }
  }

  private void set(MemorySegment[] slots, int index, long value) {
    slots[channel.rank].setAtIndex(ValueLayout.JAVA_LONG, index, value);
  }

  private static long get(MemorySegment[] slots, int peer, int index) {
    return slots[peer].getAtIndex(ValueLayout.JAVA_LONG, index);
  }

  /**
   * Copies memory of another rank.
   *
   * @param op checked for having ended
   * @param peer the rank
   * @param address the address in its process
   * @param to the native memory to copy to
   * @param offset the offset in that memory, in bytes
   * @param length the number of bytes
   * @throws Exception if the operation is over, or the rank has revoked its memory or been lost
   */
  void copy(Operation op, int peer, long address, MemorySegment to, long offset, long length)
      throws Exception {
    if (heaps != null && heap(peer).has(address, length)) {
      MemorySegment from = view(peer, address, length);
      for (long done = 0; done < length; done += SLICE) {
        channel.throwIfOver(op);
        MemorySegment.copy(from, done, to, offset + done, Math.min(SLICE, length - done));
      }
      check(peer);
      return;
    }
    @Nullable RemoteMemory @Nullable [] open = memories;
    for (long done = 0; done < length; done += SLICE) {
      channel.throwIfOver(op);
      RemoteMemory memory = open == null ? null : open[peer];
      if (memory == null
          || !memory.read(address + done, to, offset + done, Math.min(SLICE, length - done))) {
        throw channel.unreadable(peer);
      }
    }
  }

  /** Begins an operation in which others may read the heap of this rank, if they can. */
  void lend() {
    lender = allowed ? SharedHeap.ifMade() : null;
    loan = lender == null ? 0 : lender.beginLoan();
  }

  /**
   * Rejects memory that was freed before {@link #lend}: the others would read whatever is there
   * now.
   */
  static void requireAlive(MemorySegment lent) {
    if (!lent.scope().isAlive()) {
      throw new IllegalStateException("Already closed");
    }
  }

  /** Ends the operation, either normally or after {@link #revoke}. */
  void endLoan() {
    if (lender != null) {
      lender.endLoan(loan);
    }
  }

  /** Revokes access to this rank's memory, because it leaves an operation before the others. */
  void revoke() {
    if (met) {
      WORD.setVolatile(number, 0L, ~value);
      VarHandle.fullFence();
    }
  }

  private static void close(@Nullable RemoteHeap[] mapped) {
    for (RemoteHeap heap : mapped) {
      if (heap != null) {
        heap.close();
      }
    }
  }

  /**
   * Revokes access to this rank's memory and unmaps the memory of the others; no rank may be in an
   * operation.
   */
  @Override
  public void close() {
    revoke();
    @Nullable RemoteHeap[] mapped = heaps;
    heaps = null;
    Arrays.fill(views, null);
    if (mapped != null) {
      close(mapped);
    }
  }
}
