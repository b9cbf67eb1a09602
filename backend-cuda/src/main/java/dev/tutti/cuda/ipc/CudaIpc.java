package dev.tutti.cuda.ipc;

import dev.tutti.DType;
import dev.tutti.Incubating;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import java.lang.foreign.Arena;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The sharing of tensors on CUDA devices with other processes on the same host, without copying
 * (c10d: {@code CudaIPCTypes}). One process allocates a tensor here, shares it, and sends the bytes
 * of the handle to another process by any means; that process opens the handle, once. The memory is
 * freed when the first process has dropped the tensor and the other has closed it, whichever comes
 * last, and also if the other process is killed. All methods may be called from any thread.
 *
 * <p>Returned tensors are noticed when something is shared or freed, when the device is full, and
 * by {@link #collect}. Opened tensors do not outlive the process that shared them: after its end,
 * {@link ReceivedTensor#tensor} throws.
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
    Parts.of(cuda).sharing().add(atEnd);
  }

  /**
   * Creates an object with which a process shares and opens tensors.
   *
   * @param cuda the driver
   * @param job a secret that only the processes of one job share, such as {@code TUTTI_TOKEN}, of
   *     at least 16 characters; handles from other jobs are rejected
   * @throws IllegalArgumentException if the job is empty or too short
   */
  public static CudaIpc create(Cuda cuda, String job) {
    return new CudaIpc(cuda, job, false);
  }

  /**
   * Allocates uninitialized memory that can be shared; it is freed when no tensor uses it anymore.
   *
   * @param device the device on which to allocate
   * @param dtype the element type
   * @param shape the sizes in elements, outermost dimension first; empty for a scalar
   * @throws CudaException if the device is out of memory; the message gives the sizes
   */
  public Tensor allocate(CudaDevice device, DType dtype, long... shape) {
    return allocate(device, Arena.ofAuto(), dtype, shape);
  }

  /**
   * Allocates uninitialized memory that can be shared and that lives as long as an arena, or as
   * long as other processes use it.
   *
   * @param device the device on which to allocate
   * @param arena the arena that owns the memory; closing it does not wait for the device
   * @param dtype the element type
   * @param shape the sizes in elements, outermost dimension first; empty for a scalar
   * @throws CudaException if the device is out of memory; the message gives the sizes
   */
  public Tensor allocate(CudaDevice device, Arena arena, DType dtype, long... shape) {
    sender.requireOpen();
    listen(device);
    return sender.allocate(device, arena, dtype, shape);
  }

  /** Reclaims returned memory before an allocation on a device fails. */
  private void listen(CudaDevice device) {
    synchronized (listeners) {
      if (!listened[device.index()]) {
        listened[device.index()] = true;
        listeners.add(Parts.of(device).sharable().addListener(_ -> onSharableFull(device)));
        listeners.add(Parts.of(device).allocator().addListener(_ -> onFull(device)));
      }
    }
  }

  private void onSharableFull(CudaDevice device) {
    collect();
    Parts.of(device).allocator().releaseCached();
  }

  private void onFull(CudaDevice device) {
    collect();
    Parts.of(device).sharable().releaseCached();
  }

  /**
   * Shares a tensor with one other process. The other process's reads and writes are ordered after
   * the work now in the current stream of the tensor's device; if too many events are in use, the
   * host waits for that work instead.
   *
   * @param tensor a contiguous tensor made by {@link #allocate}, or part of one; the caller may
   *     keep or drop it
   * @return the shared tensor: it has the handle to send, and says whether the tensor was returned
   * @throws CudaIpcException if the tensor came from another process, or was not allocated for
   *     sharing
   * @throws IllegalArgumentException if it is not dense and contiguous on a CUDA device
   * @throws CudaException if the driver fails; nothing is then shared
   */
  public SharedTensor share(Tensor tensor) {
    if (!tensor.device().type().equals("cuda") || tensor.isSparse() || !tensor.isContiguous()) {
      throw new IllegalArgumentException(
          "the tensor must be dense and contiguous on a CUDA device: " + tensor.describe());
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory of " + tensor.describe() + " was freed");
    }
    if (receiver.has(tensor.device(), tensor.segment().address())) {
      throw new CudaIpcException(
          Reason.RECEIVED,
          "a tensor received from another process cannot be shared again; copy it to one made by"
              + " CudaIpc.allocate: "
              + tensor.describe());
    }
    try {
      return sender.share(tensor);
    } finally {
      Reference.reachabilityFence(tensor); // else its memory may be freed before it is counted
    }
  }

  /**
   * Opens a tensor of another process, and orders the current stream of its device after that
   * process's work.
   *
   * @param handle the bytes that {@link SharedTensor#handle} returned in that process
   * @return the tensor, which must be closed
   * @throws CudaIpcException if the handle cannot be opened here; the exception gives the reason
   * @throws CudaException if the driver fails; the handle can then be opened again
   */
  public ReceivedTensor open(byte[] handle) {
    return receiver.open(handle);
  }

  /**
   * Reclaims everything that was closed elsewhere or was open in processes that have ended (c10d:
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

  /** Returns the number of tensors that were shared here and not yet returned. */
  public int outstanding() {
    return sender.outstanding();
  }

  /** Returns the number of memory blocks that were freed here and are still in use elsewhere. */
  public int pendingReleaseCount() {
    return sender.limbo();
  }

  /** Returns the number of tensors of other processes that are open here. */
  public int openCount() {
    return receiver.count();
  }

  /**
   * Waits until everything that was shared here has been returned; call this before a process ends
   * whose tensors are in use elsewhere.
   *
   * @param timeout the maximum time to wait
   * @return whether everything was returned
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
   * Stops sharing, and takes back tensors that no process has opened. Tensors that other processes
   * have open remain theirs until they close them or this process ends; tensors of other processes
   * that are open here must be closed first.
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
    Parts.of(cuda).sharing().remove(atEnd);
    synchronized (listeners) {
      listeners.forEach(Registration::close);
      listeners.clear();
    }
  }

  /** Gives everything up when the driver closes. */
  void giveUp() {
    receiver.giveUp();
    sender.giveUp();
    forget();
  }

  IpcSender sender() {
    return sender;
  }
}
