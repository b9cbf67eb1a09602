package dev.tutti.cuda;

import dev.tutti.Tensor;
import dev.tutti.TuttiException;

/**
 * A tensor in the memory of another process, which this one may read and write. Its memory stays as
 * long as this is open and the other process runs. Any thread may call any method.
 */
public final class ReceivedTensor implements AutoCloseable {
  private final IpcReceiver.Opened opened;

  ReceivedTensor(IpcReceiver.Opened opened) {
    this.opened = opened;
  }

  /**
   * Returns the tensor; the stream that was current when it was opened is ordered behind the work
   * of the process that shared it.
   *
   * @throws IllegalStateException if this was closed
   * @throws CudaIpcException with {@link CudaIpcException.Reason#PRODUCER_GONE} if the process that
   *     shared it has ended: what the memory holds then is not defined. Work that was enqueued
   *     before may fail the device's context
   */
  public synchronized Tensor tensor() {
    if (opened.isClosed()) {
      throw new IllegalStateException("the tensor was closed");
    }
    opened.requireProducer();
    return opened.tensor();
  }

  /** Tells whether the process that shared it runs. */
  public boolean hasProducer() {
    return opened.hasProducer();
  }

  /**
   * Gives the memory back, once the stream that was current when it was opened and the calling
   * thread's current one are done with what they have. Wait for other streams before. The tensor
   * cannot be used any more. The second and later calls do nothing.
   *
   * @throws TuttiException if a stream is not done in 30 minutes; the tensor is still open then
   * @throws CudaException if the driver fails; the tensor is closed then, unless it was at the wait
   *     for a stream and the device's context still works
   * @throws IllegalStateException if a call has the tensor's segment; the tensor is still open then
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
        closeAfter(e); // nothing runs there any more
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
