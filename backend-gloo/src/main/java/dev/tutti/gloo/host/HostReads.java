package dev.tutti.gloo.host;

import dev.tutti.gloo.transport.RemoteMemory;
import dev.tutti.spi.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/**
 * Reads the tensors of the ranks of a host where they are, if the system lets every rank read every
 * other one.
 */
final class HostReads {
  /*
   * Whether it does, the ranks find out together, in the first operation that wants it: each shows its
   * process and the address of a random number, tries to read the numbers of the others, and shows
   * whether that went well. All then know the same.
   *
   * While a rank is in such an operation, others may read its tensors. It leaves it well only after all
   * said that they read what they need. If it leaves it otherwise it first changes its number, which
   * the others look for behind what they read, so that nobody takes bytes for its own that came after.
   */
  /** Least bytes of the longest part of an operation for which reading is worth its two rounds. */
  static final long LEAST_BYTES = 256 * 1024;

  private static final long SLICE = 4 << 20;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final HostChannel channel;
  private final boolean allowed;
  private final MemorySegment number = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
  private @Nullable RemoteMemory @Nullable [] memories;
  private boolean met;

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
    if (!met) {
      memories = meet(op);
      met = true;
    }
    return memories != null;
  }

  private @Nullable RemoteMemory @Nullable [] meet(Operation op) throws Exception {
    long value = new SecureRandom().nextLong();
    number.set(ValueLayout.JAVA_LONG, 0, value);
    long process = allowed ? ProcessHandle.current().pid() : 0;
    MemorySegment[] slots = channel.beginSlots();
    set(slots, 0, process);
    set(slots, 1, number.address());
    set(slots, 2, value);
    channel.publishSlot();
    channel.awaitSlots(op);
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
    channel.publishSlot();
    channel.awaitSlots(op);
    for (int peer = 0; peer < channel.size; peer++) {
      readable &= get(slots, peer, 0) == 1;
    }
    return readable ? found : null;
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
    WORD.setVolatile(number, 0L, ~number.get(ValueLayout.JAVA_LONG, 0));
  }
}
