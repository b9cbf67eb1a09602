package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupClosedException;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cpu.SymmetricChecks;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** One rank's handle to the symmetric memory of a threaded group. */
final class SharedMemory implements SymmetricMemory {
  private final int size;
  private final SharedBlock block;
  private final int rank;
  private final Set<SharedMemory> open;
  private final Runnable released;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Creates a handle.
   *
   * @param open the open handles, from which this one removes itself
   * @param released runs when the last rank has closed its handle
   */
  SharedMemory(int size, SharedBlock block, int rank, Set<SharedMemory> open, Runnable released) {
    this.size = size;
    this.open = open;
    this.released = released;
    this.block = block;
    this.rank = rank;
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
    return block.byteSize();
  }

  @Override
  public int channels() {
    return SharedBlock.CHANNELS;
  }

  @Override
  public Tensor buffer(int rank, DType dtype, long byteOffset, long... shape) {
    requireOpen();
    SymmetricChecks.rank(rank, size());
    SymmetricChecks.view(block.byteSize(), dtype, byteOffset, shape);
    return block.view(this.rank, rank, dtype, byteOffset, shape);
  }

  @Override
  public void barrier(int channel, Duration timeout) {
    requireOpen();
    SymmetricChecks.channel(channel, channels());
    block.barrier(this, channel, timeout);
  }

  @Override
  public void putSignal(int rank, int channel, Duration timeout) {
    requireOpen();
    SymmetricChecks.rank(rank, size());
    SymmetricChecks.channel(channel, channels());
    block.putSignal(this, rank, channel, timeout);
  }

  @Override
  public void waitSignal(int rank, int channel, Duration timeout) {
    requireOpen();
    SymmetricChecks.rank(rank, size());
    SymmetricChecks.channel(channel, channels());
    block.waitSignal(this, rank, channel, timeout);
  }

  @Override
  public boolean hasMulticast() {
    return false;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      open.remove(this);
      if (block.release(rank)) {
        released.run();
      }
    }
  }

  void requireOpen() {
    if (closed.get()) {
      throw new GroupClosedException("symmetric memory of rank " + rank + " is closed");
    }
  }
}
