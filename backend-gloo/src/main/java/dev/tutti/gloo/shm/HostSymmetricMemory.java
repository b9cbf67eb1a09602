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
   * A thread that waits in the pad or reduces in the buffers counts itself as a user; the memory is
   * unmapped by the last user after the close, so no thread loses it while it works there. A view
   * that a program made is not counted: it throws once the memory is gone.
   */
  private final ShmFile file;
  private final long bufferBytes;
  private final MemorySegment[] buffers;
  private final SignalPad pad;
  private final Consumer<HostSymmetricMemory> onClose;
  private final UserCount users = new UserCount();
  private final int rank;
  private final int size;

  /** The number of the allocation in its group, the same on all ranks; from 1. */
  final long id;

  /**
   * Creates a rank's view.
   *
   * @param id number of the allocation
   * @param file the memory, mapped; closed with this
   * @param layout how it is divided
   * @param transport knows which peers are gone
   * @param group name of the group, for exceptions
   * @param spinNanos how long a waiting thread polls
   * @param onClose is told of the close
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
    pad = new SignalPad(file.segment(), layout, transport, group, spinNanos, users::isClosed);
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

  /** Returns the buffers of all ranks, by rank; to be used between enter and leave only. */
  MemorySegment[] buffers() {
    return buffers;
  }

  /** Returns where in this rank's buffer some native memory begins, or -1 if it is not inside. */
  long offsetOf(MemorySegment memory, long bytes) {
    long offset = memory.address() - buffers[rank].address();
    return offset >= 0 && offset <= bufferBytes - bytes ? offset : -1;
  }

  /** Begins to use the memory, which then stays until {@link #leave}; false if it is closed. */
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
