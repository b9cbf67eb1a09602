package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupClosedException;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cpu.SymmetricChecks;
import dev.tutti.cpu.memory.UserCount;
import dev.tutti.gloo.transport.Transport;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.function.Consumer;

/** One rank's view of symmetric memory that the ranks of a host share. */
final class HostSymmetricMemory implements SymmetricMemory {
  /*
   * A thread that waits in the pad or reduces in the buffers is counted as a user. The last user
   * after the close unmaps the memory, so that no thread loses it while working in it. A view
   * created by a program is not counted: it throws once the memory has been unmapped.
   */
  private final ShmFile file;
  private final long bufferBytes;
  private final MemorySegment[] buffers;
  private final SignalPad pad;
  private final Consumer<HostSymmetricMemory> onClose;
  private final UserCount users = new UserCount();
  private final int rank;
  private final int size;

  /** The number of the allocation in its group, the same on all ranks; starts at 1. */
  final long id;

  /**
   * Creates a rank's view.
   *
   * @param id the number of the allocation
   * @param file the mapped memory; closed with this
   * @param layout the layout of the memory
   * @param transport holds which peers have been lost
   * @param group the name of the group, for exceptions
   * @param spinNanos how long a waiting thread polls
   * @param onClose notified of the close
   */
  HostSymmetricMemory(
      long id,
      ShmFile file,
      SymmetricLayout layout,
      Transport transport,
      String group,
      long spinNanos,
      Consumer<HostSymmetricMemory> onClose) {
    this.id = id;
    this.file = file;
    this.bufferBytes = layout.bufferBytes();
    this.onClose = onClose;
    rank = transport.rank();
    size = transport.size();
    buffers = new MemorySegment[size];
    for (int r = 0; r < size; r++) {
      buffers[r] = file.segment().asSlice(layout.buffer(r), bufferBytes);
    }
    pad =
        new SignalPad(
            file.segment(), layout, transport, group, spinNanos, users::isClosed, file.time());
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public Device device() {
    return Device.CPU;
  }

  @Override
  public long bufferByteSize() {
    return bufferBytes;
  }

  @Override
  public int channels() {
    return SymmetricLayout.CHANNELS;
  }

  @Override
  public Tensor buffer(int ofRank, DType dtype, long byteOffset, long... shape) {
    if (users.isClosed()) {
      throw closed();
    }
    SymmetricChecks.rank(ofRank, size);
    long bytes = SymmetricChecks.view(bufferBytes, dtype, byteOffset, shape);
    return Tensor.wrap(buffers[ofRank].asSlice(byteOffset, bytes), dtype, shape);
  }

  @Override
  public void barrier(int channel, Duration timeout) {
    SymmetricChecks.channel(channel, SymmetricLayout.CHANNELS);
    requireOpen();
    try {
      pad.barrier(channel, timeout);
    } finally {
      leave();
    }
  }

  @Override
  public void putSignal(int toRank, int channel, Duration timeout) {
    SymmetricChecks.rank(toRank, size);
    SymmetricChecks.channel(channel, SymmetricLayout.CHANNELS);
    requireOpen();
    try {
      pad.put(toRank, channel, timeout);
    } finally {
      leave();
    }
  }

  @Override
  public void waitSignal(int ofRank, int channel, Duration timeout) {
    SymmetricChecks.rank(ofRank, size);
    SymmetricChecks.channel(channel, SymmetricLayout.CHANNELS);
    requireOpen();
    try {
      pad.take(ofRank, channel, timeout);
    } finally {
      leave();
    }
  }

  @Override
  public boolean hasMulticast() {
    return false;
  }

  /**
   * Returns the buffers of all ranks, in rank order; they may be used only between enter and leave.
   */
  MemorySegment[] buffers() {
    return buffers;
  }

  /**
   * Returns the offset in this rank's buffer at which the given native memory begins, or -1 if it
   * is not inside the buffer.
   */
  long offsetOf(MemorySegment memory, long bytes) {
    long offset = memory.address() - buffers[rank].address();
    return offset >= 0 && offset <= bufferBytes - bytes ? offset : -1;
  }

  /**
   * Begins to use the memory, which then stays mapped until {@link #leave}; returns false if it is
   * closed.
   */
  boolean enter() {
    return users.enter();
  }

  void leave() {
    if (users.leave()) {
      file.close();
    }
  }

  private void requireOpen() {
    if (!enter()) {
      throw closed();
    }
  }

  private GroupClosedException closed() {
    return new GroupClosedException("symmetric memory of rank " + rank + " is closed");
  }

  @Override
  public void close() {
    if (users.close()) {
      onClose.accept(this);
      leave();
    }
  }
}
