package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Incubating;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaIpcException.Reason;
import java.lang.foreign.Arena;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Shares tensors of CUDA devices with other processes of the host, without a copy (c10d: {@code
 * CudaIPCTypes}). One process allocates a tensor here and shares it, sends the bytes of the handle
 * to another one by any means, and that one opens them, once. The memory goes back when the tensor
 * was dropped in the first process and closed in the other, whichever comes last; also when the
 * other one is killed. Any thread may call any method.
 *
 * <p>What is returned is noticed when something is shared or freed, when the device is full, and by
 * {@link #collect}. Opened tensors do not outlive the process that shared them: {@link
 * ReceivedTensor#tensor} throws then.
 */
@Incubating
public final class CudaIpc implements AutoCloseable {
  private static final long POLL_NANOS = 1_000_000;

  private final Cuda cuda;
  private final IpcSender sender;
  private final IpcReceiver receiver;
  private final List<Registration> listeners = new ArrayList<>();
  private final boolean[] listened;
  private final Runnable atEnd = this::giveUp;

  CudaIpc(Cuda cuda, String job, boolean allowsOwn) {
    JobSeal seal = new JobSeal(job);
    this.cuda = cuda;
    this.sender = new IpcSender(cuda, seal);
    this.receiver = new IpcReceiver(cuda, seal, allowsOwn);
    this.listened = new boolean[cuda.deviceCount()];
    cuda.sharing().add(atEnd);
  }

  /**
   * Creates what a process shares and opens tensors by.
   *
   * @param cuda the driver
   * @param job what the processes of a job have in common and others do not know, such as {@code
   *     TUTTI_TOKEN}, at least 16 characters; handles of other jobs are refused
   * @throws IllegalArgumentException if the job is empty or shorter
   */
  public static CudaIpc create(Cuda cuda, String job) {
    return new CudaIpc(cuda, job, false);
  }

  /**
   * Allocates memory of any content that can be shared, freed when no tensor uses it any more.
   *
   * @param device whose memory
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   * @throws CudaException if the device has no room, with the numbers
   */
  public Tensor allocate(CudaDevice device, DType dtype, long... shape) {
    return allocate(device, Arena.ofAuto(), dtype, shape);
  }

  /**
   * Allocates memory of any content that can be shared and that lives as long as an arena, or as
   * long as others use it.
   *
   * @param device whose memory
   * @param arena owns the memory; closing it does not wait for the device
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   * @throws CudaException if the device has no room, with the numbers
   */
  public Tensor allocate(CudaDevice device, Arena arena, DType dtype, long... shape) {
    sender.requireOpen();
    listen(device);
    return sender.allocate(device, arena, dtype, shape);
  }

  /** Takes back what was returned before an allocation on a device fails. */
  private void listen(CudaDevice device) {
    synchronized (listeners) {
      if (!listened[device.index()]) {
        listened[device.index()] = true;
        listeners.add(device.sharable().addListener(_ -> onSharableFull(device)));
        listeners.add(device.allocator().addListener(_ -> onFull(device)));
      }
    }
  }

  private void onSharableFull(CudaDevice device) {
    collect();
    device.allocator().releaseCached();
  }

  private void onFull(CudaDevice device) {
    collect();
    device.sharable().releaseCached();
  }

  /**
   * Shares a tensor with one other process. Its reads and writes come after the work of the current
   * stream of the tensor's device; where too many events are in use the host waits for that work.
   *
   * @param tensor contiguous, made by {@link #allocate}, or a part of one that was; kept or not
   * @return what to send, and whether it was returned
   * @throws CudaIpcException if the tensor came from another process, or was not made to be shared
   * @throws IllegalArgumentException if it is not dense and contiguous on a CUDA device
   * @throws CudaException if the driver fails; nothing is shared then
   */
  public SharedTensor share(Tensor tensor) {
    if (!tensor.device().type().equals("cuda") || tensor.isSparse() || !tensor.isContiguous()) {
      throw new IllegalArgumentException(
          "must be dense and contiguous on a CUDA device: " + tensor.describe());
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory was freed of " + tensor.describe());
    }
    if (receiver.has(tensor.device(), tensor.segment().address())) {
      throw new CudaIpcException(
          Reason.RECEIVED,
          "the tensor came from another process and cannot be sent on; copy it to one that"
              + " CudaIpc.allocate made: "
              + tensor.describe());
    }
    try {
      return sender.share(tensor);
    } finally {
      Reference.reachabilityFence(tensor); // else its memory may go before it is counted
    }
  }

  /**
   * Opens a tensor of another process, and orders the current stream of its device behind the work
   * of that process.
   *
   * @param handle what {@link SharedTensor#handle} returned there
   * @return the tensor, to be closed
   * @throws CudaIpcException if the handle cannot be opened here, with the reason
   * @throws CudaException if the driver fails; the handle can be opened again then
   */
  public ReceivedTensor open(byte[] handle) {
    return receiver.open(handle);
  }

  /**
   * Takes back all that was closed elsewhere, or was open in processes that have ended (c10d:
   * {@code CudaIPCCollect}).
   *
   * @return whether memory was freed
   */
  public boolean collect() {
    boolean freed = sender.collectAll();
    if (sender.isDisposed()) {
      forget();
    }
    return freed;
  }

  /** Returns the number of tensors that were shared here and not returned. */
  public int outstanding() {
    return sender.outstanding();
  }

  /** Returns the number of pieces of memory that were freed here and are in use elsewhere. */
  public int pendingReleaseCount() {
    return sender.limbo();
  }

  /** Returns the number of tensors of other processes that are open here. */
  public int openCount() {
    return receiver.count();
  }

  /**
   * Waits until all that was shared here was returned; to be called before a process ends whose
   * tensors others use.
   *
   * @param timeout the longest wait from now
   * @return whether all was returned
   */
  public boolean awaitReturned(Duration timeout) {
    long deadline = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    collect();
    while (outstanding() > 0) {
      if (System.nanoTime() - deadline >= 0) {
        collect();
        return outstanding() == 0;
      }
      LockSupport.parkNanos(POLL_NANOS);
      sender.collect();
    }
    collect();
    return true;
  }

  /**
   * Shares no more, and takes back what nobody has opened. What others have open stays theirs until
   * they close it or this process ends, and tensors that are open here have to be closed before.
   *
   * @throws IllegalStateException if tensors of other processes are open here
   */
  @Override
  public void close() {
    receiver.close();
    sender.close();
    if (sender.isDisposed()) {
      forget();
    }
  }

  private void forget() {
    cuda.sharing().remove(atEnd);
    synchronized (listeners) {
      listeners.forEach(Registration::close);
      listeners.clear();
    }
  }

  /** Gives everything up, at the end of the driver. */
  void giveUp() {
    receiver.giveUp();
    sender.giveUp();
    forget();
  }

  IpcSender sender() {
    return sender;
  }
}
