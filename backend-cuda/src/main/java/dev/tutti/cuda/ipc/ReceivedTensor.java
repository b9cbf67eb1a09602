package dev.tutti.cuda.ipc;

import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaException;

/**
 * A tensor in the memory of another process, which this process may read and write. Its memory
 * stays valid as long as this object is open and the other process runs. All methods may be called
 * from any thread.
 */
public final class ReceivedTensor implements AutoCloseable {
  private final IpcReceiver.Opened opened;

  ReceivedTensor(IpcReceiver.Opened opened) {
    this.opened = opened;
  }

  /**
   * Returns the tensor; the stream that was current when it was opened is ordered after the work of
   * the process that shared it.
   *
   * @throws IllegalStateException if this tensor was closed
   * @throws CudaIpcException with {@link CudaIpcException.Reason#PRODUCER_GONE} if the process that
   *     shared the tensor has ended: the contents of the memory are then undefined. Work that was
   *     enqueued before may fail the device's context
   */
  public synchronized Tensor tensor() {
    if (opened.isClosed()) {
      throw new IllegalStateException("the tensor was closed");
    }
    opened.requireProducer();
    return opened.tensor();
  }

  /** Returns whether the process that shared the tensor is still running. */
  public boolean hasProducer() {
    return opened.hasProducer();
  }

  /**
   * Returns the memory, once the work now in the calling thread's current stream and in the stream
   * that was current at opening is done. Other streams must be waited for beforehand. The tensor
   * cannot be used afterwards. Further calls have no effect.
   *
   * @throws TuttiException if a stream is not done within 30 minutes; the tensor then remains open
   * @throws CudaException if the driver fails; the tensor is then closed, unless the failure came
   *     while waiting for a stream and the device's context still works
   * @throws IllegalStateException if a running call holds the tensor's segment; the tensor then
   *     remains open
   */
  @Override
  public synchronized void close() {
    if (opened.isClosed()) {
      return;
    }
    try {
      opened.awaitStreams();
    } catch (CudaException e) {
      if (opened.isLost()) {
        closeAfter(e); // nothing runs there anymore
      }
      throw e;
    }
    opened.close();
  }

  private void closeAfter(CudaException failure) {
    try {
      opened.close();
    } catch (CudaException e) {
      failure.addSuppressed(e);
    }
  }
}
