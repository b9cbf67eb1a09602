package dev.tutti.gloo.host;

import dev.tutti.gloo.transport.RemoteMemory;
import dev.tutti.spi.Operation;
import dev.tutti.spi.SharedHeap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.security.SecureRandom;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Reads the tensors of the ranks of a host where they are: those that Tutti allocated in memory
 * that all map, others through the system, if it lets every rank read every other one.
 */
final class HostReads implements AutoCloseable {
  /*
   * What it does, the ranks find out together, in the first operation that wants it: each shows its
   * process, its heap and the address of a random number in it, tries to map the heaps and to read the
   * numbers of the others, and shows whether that went well. All then know the same.
   *
   * While a rank is in such an operation, others may read its tensors. It leaves it well only after all
   * said that they read what they need. If it leaves it otherwise it first changes its number, which
   * the others look for after what they read, so that nobody takes bytes for its own that came after.
   */
  /** Least bytes of the longest part of an operation for which reading is worth its two rounds. */
  static final long LEAST_BYTES = 256 * 1024;

  /** Least bytes of a part for which reading is worth its round where all heaps are mapped. */
  static final long LEAST_MAPPED = SharedHeap.LEAST_BYTES;

  private static final long SLICE = 4 << 20;
  private static final System.Logger LOG = System.getLogger(HostReads.class.getName());
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final HostChannel channel;
  private final boolean allowed;
  private final Arena arena = Arena.ofShared();
  private MemorySegment number = MemorySegment.NULL;
  private @Nullable RemoteMemory @Nullable [] memories;
  private Heap @Nullable [] heaps;
  private boolean met;

  /**
   * Is what a rank shows of its heap.
   *
   * @param memory it is here, empty if it could not be mapped
   * @param address of its first byte in that rank's process
   * @param number address of the rank's number there
   * @param value which that is
   */
  private record Heap(MemorySegment memory, long address, long number, long value) {
    boolean has(long first, long bytes) {
      return first >= address && bytes <= memory.byteSize() - (first - address);
    }

    boolean isIntact() {
      return has(number, Long.BYTES) && (long) WORD.getVolatile(memory, number - address) == value;
    }
  }

  /**
   * Reads nothing yet.
   *
   * @param channel connects the ranks
   * @param allowed whether this rank may read and be read
   */
  HostReads(HostChannel channel, boolean allowed) {
    this.channel = channel;
    this.allowed = allowed;
  }

  /**
   * Tells whether all ranks can read each other; all call this at the same place of an operation.
   *
   * @throws Exception if a wait for another rank ended without success
   */
  boolean areOpen(Operation op) throws Exception {
    meet(op);
    return memories != null;
  }

  /**
   * Tells whether all ranks can see each other's heaps; all call this at the same place of an
   * operation.
   *
   * @throws Exception if a wait for another rank ended without success
   */
  boolean areMapped(Operation op) throws Exception {
    meet(op);
    return heaps != null;
  }

  private void meet(Operation op) throws Exception {
    if (met) {
      return;
    }
    SharedHeap heap = allowed ? SharedHeap.ofProcess().orElse(null) : null;
    long value = new SecureRandom().nextLong();
    number = place(heap);
    number.set(ValueLayout.JAVA_LONG, 0, value);
    long process = allowed ? ProcessHandle.current().pid() : 0;
    MemorySegment[] slots = channel.beginSlots();
    set(slots, 0, process);
    set(slots, 1, number.address());
    set(slots, 2, value);
    set(slots, 3, heap == null ? 0 : heap.address());
    set(slots, 4, heap == null ? 0 : heap.byteSize());
    set(slots, 5, heap == null ? 0 : heap.descriptor());
    set(slots, 6, heap == null ? 0 : heap.number());
    channel.publishSlot();
    channel.awaitSlots(op);
    Heap[] mapped = new Heap[channel.size];
    boolean mappable = true;
    for (int peer = 0; peer < channel.size; peer++) {
      mapped[peer] = map(slots, peer);
      mappable &= mapped[peer].isIntact();
    }
    @Nullable RemoteMemory[] found = new @Nullable RemoteMemory[channel.size];
    boolean readable = process > 0;
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
    slots = channel.beginSlots();
    set(slots, 0, readable ? 1 : 0);
    set(slots, 1, mappable ? 1 : 0);
    channel.publishSlot();
    channel.awaitSlots(op);
    for (int peer = 0; peer < channel.size; peer++) {
      readable &= get(slots, peer, 0) == 1;
      mappable &= get(slots, peer, 1) == 1;
    }
    memories = readable ? found : null;
    heaps = mappable ? mapped : null;
    met = true;
  }

  private static MemorySegment place(@Nullable SharedHeap heap) {
    Optional<MemorySegment> seen = heap == null ? Optional.empty() : heap.allocate(Long.BYTES);
    return seen.orElseGet(() -> Arena.ofAuto().allocate(Long.BYTES, Long.BYTES));
  }

  private Heap map(MemorySegment[] slots, int peer) {
    long address = get(slots, peer, 3);
    MemorySegment memory = MemorySegment.NULL;
    if (allowed && address != 0) {
      try {
        memory =
            SharedHeap.map(
                get(slots, peer, 0),
                (int) get(slots, peer, 5),
                get(slots, peer, 6),
                get(slots, peer, 4),
                arena);
      } catch (IOException | RuntimeException | OutOfMemoryError e) {
        LOG.log(System.Logger.Level.DEBUG, "cannot map the tensors of rank " + peer, e);
      }
    }
    return new Heap(memory, address, get(slots, peer, 1), get(slots, peer, 2));
  }

  /**
   * Returns memory of another rank that is mapped, to be read.
   *
   * @param peer the rank
   * @param address in its process
   * @param bytes length
   * @throws IllegalArgumentException if it is not in that rank's heap
   */
  MemorySegment view(int peer, long address, long bytes) {
    Heap theirs = Objects.requireNonNull(heaps)[peer];
    if (!theirs.has(address, bytes)) {
      throw new IllegalArgumentException(
          "rank " + peer + " shows " + bytes + " bytes that are not in its memory");
    }
    return theirs.memory.asSlice(address - theirs.address, bytes);
  }

  /**
   * Makes sure that what was read of another rank's heap until now is what it lent.
   *
   * @throws Exception if that rank left the operation
   */
  void check(int peer) throws Exception {
    VarHandle.loadLoadFence();
    if (!Objects.requireNonNull(heaps)[peer].isIntact()) {
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
   * @param op is watched for its end
   * @param peer the rank
   * @param address in its process
   * @param to native memory
   * @param length bytes
   * @throws Exception if the operation is over, or the rank took its memory back or is gone
   */
  void copy(Operation op, int peer, long address, MemorySegment to, long length) throws Exception {
    Heap[] mapped = heaps;
    if (mapped != null && mapped[peer].has(address, length)) {
      MemorySegment from = view(peer, address, length);
      for (long done = 0; done < length; done += SLICE) {
        channel.throwIfOver(op);
        MemorySegment.copy(from, done, to, done, Math.min(SLICE, length - done));
      }
      check(peer);
      return;
    }
    @Nullable RemoteMemory @Nullable [] open = memories;
    for (long done = 0; done < length; done += SLICE) {
      channel.throwIfOver(op);
      RemoteMemory memory = open == null ? null : open[peer];
      if (memory == null
          || !memory.read(address + done, to, done, Math.min(SLICE, length - done))) {
        throw channel.unreadable(peer);
      }
    }
  }

  /** Takes the memory of this rank back, as it leaves an operation before the others. */
  void revoke() {
    if (!met) {
      return;
    }
    WORD.setVolatile(number, 0L, ~number.get(ValueLayout.JAVA_LONG, 0));
  }

  /** Unmaps the memory of others; no thread may be in an operation. */
  @Override
  public void close() {
    arena.close();
  }
}
