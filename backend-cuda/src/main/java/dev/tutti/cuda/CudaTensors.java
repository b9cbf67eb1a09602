package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.driver.PointerInfo;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/**
 * A factory for tensors of one device, which also copies and wraps them. All methods may be called
 * from any thread; work goes to the calling thread's current stream on the device.
 *
 * <p>The memory comes from a caching allocator. It belongs to the stream that was current when the
 * tensor was made; before a tensor is dropped, {@link #useOn} must be called for every other stream
 * that still works on it.
 */
public final class CudaTensors {
  private final CudaDevice device;

  CudaTensors(CudaDevice device) {
    this.device = device;
  }

  /**
   * Allocates uninitialized memory; it is freed when no tensor uses it anymore.
   *
   * @param dtype the element type
   * @param shape the sizes in elements, outermost dimension first; empty for a scalar
   * @throws CudaException if the device is out of memory; the message gives the sizes
   */
  public Tensor allocate(DType dtype, long... shape) {
    return allocate(Arena.ofAuto(), dtype, shape);
  }

  /**
   * Allocates uninitialized memory that lives as long as an arena.
   *
   * @param arena the arena that owns the memory; closing it does not wait for the device
   * @param dtype the element type
   * @param shape the sizes in elements, outermost dimension first; empty for a scalar
   * @throws CudaException if the device is out of memory; the message gives the sizes
   */
  public Tensor allocate(Arena arena, DType dtype, long... shape) {
    DeviceAllocator allocator = device.allocator();
    return BlockTensors.allocate(
        allocator,
        device.device(),
        device.currentStream().forBlocks(),
        _ -> {},
        allocator::free,
        arena,
        dtype,
        shape);
  }

  /**
   * Wraps device memory of another library, without a copy.
   *
   * @param address the address at which the memory begins
   * @param owner kept reachable as long as a tensor views the memory; a cleaner of its own may free
   *     the memory afterwards
   * @param dtype the element type
   * @param shape the sizes in elements, outermost dimension first
   * @throws IllegalArgumentException if the memory is unknown to the driver, is on another device
   *     or on the host, or ends before the tensor does
   */
  public Tensor wrap(long address, Object owner, DType dtype, long... shape) {
    long bytes = BlockTensors.byteSize(dtype, shape);
    device.context().enter();
    PointerInfo info = device.context().driver().memory().pointerInfo(address);
    String what = "address 0x" + Long.toHexString(address);
    if (info.kind() != PointerInfo.MemoryKind.DEVICE
        && info.kind() != PointerInfo.MemoryKind.MANAGED) {
      throw new IllegalArgumentException(
          what + " is not memory of " + device + " but of kind " + info.kind());
    }
    if (info.device() != device.index()) {
      throw new IllegalArgumentException(
          what + " is not memory of " + device + " but of cuda:" + info.device());
    }
    long left = info.rangeStart() + info.rangeBytes() - address;
    if (left < bytes) {
      throw new IllegalArgumentException(
          what + " has only " + left + " bytes left in its allocation, not " + bytes);
    }
    MemorySegment segment =
        MemorySegment.ofAddress(address).reinterpret(bytes, Arena.ofAuto(), new Owner(owner));
    return BlockTensors.view(device.device(), segment, dtype, shape);
  }

  /** A cleanup action that keeps an object reachable as long as its segment is reachable. */
  private record Owner(Object owner) implements Consumer<MemorySegment> {
    @Override
    public void accept(MemorySegment segment) {}
  }

  /**
   * Copies a host tensor to a new tensor on this device, on the current stream. The host tensor may
   * be modified as soon as this method returns.
   *
   * @param host a dense host tensor
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public Tensor copyOf(Tensor host) {
    Tensor copy = allocate(host.dtype(), host.shape());
    copyFromHost(copy, host);
    return copy;
  }

  /**
   * Copies a host tensor into a tensor on this device, on the current stream. The host tensor may
   * be modified as soon as this method returns.
   *
   * @param target a contiguous tensor on this device
   * @param host a dense host tensor of the same type and number of elements
   * @throws TuttiException if the stream does not complete the copy within 30 minutes
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public void copyFromHost(Tensor target, Tensor host) {
    requireOwn(target);
    requireHost(host);
    requireAlike(target, host);
    hostCopies().toDevice(target.segment().address(), host.contiguous().segment(), host.byteSize());
  }

  /**
   * Copies a tensor of this device to a new host tensor, after the work in the current stream, and
   * waits for the copy.
   *
   * @param source a contiguous tensor on this device
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public Tensor toHost(Tensor source) {
    Tensor host = Tensor.allocate(source.dtype(), source.shape());
    copyToHost(host, source);
    return host;
  }

  /**
   * Copies a tensor of this device into a host tensor, after the work in the current stream, and
   * waits for the copy.
   *
   * @param host a contiguous host tensor
   * @param source a contiguous tensor on this device, of the same type and number of elements
   * @throws TuttiException if the stream does not complete the copy within 30 minutes
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public void copyToHost(Tensor host, Tensor source) {
    requireOwn(source);
    requireHost(host);
    requireAlike(host, source);
    if (!host.isContiguous()) {
      throw new IllegalArgumentException("the host tensor must be contiguous: " + host);
    }
    hostCopies().toHost(host.segment(), source.segment().address(), source.byteSize());
  }

  /**
   * Declares that another stream works on a tensor that was made here; its memory is then reused
   * only after the work now in that stream is done.
   *
   * @param tensor a tensor on this device
   * @param stream the other stream, possibly on another device
   * @throws IllegalArgumentException if the tensor was not made here
   */
  public void useOn(Tensor tensor, CudaStream stream) {
    requireOwn(tensor);
    DeviceAllocator allocator = device.allocator();
    DeviceBlock block = allocator.find(tensor.segment().address());
    if (block == null) {
      allocator = device.sharable();
      block = allocator.find(tensor.segment().address());
    }
    if (block == null) {
      throw new IllegalArgumentException("the tensor was not allocated here: " + tensor.describe());
    }
    allocator.useOn(block, stream.forBlocks());
  }

  /** Returns the number of bytes in use by tensors. */
  public long usedBytes() {
    return device.allocator().usage().usedBytes();
  }

  /** Returns the number of bytes obtained from the driver, whether in use or cached. */
  public long reservedBytes() {
    return device.allocator().usage().reservedBytes();
  }

  /** Returns cached memory to the driver, except memory that streams still use. */
  public void releaseCached() {
    device.allocator().releaseCached();
  }

  /**
   * Adds a listener that is called when the device is full, before an allocation fails.
   *
   * @param listener frees memory that can be spared; called on the allocating thread
   * @return a registration that removes the listener when closed
   */
  public Registration onPressure(MemoryPressureListener listener) {
    return device.allocator().addListener(listener);
  }

  private HostCopies hostCopies() {
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      throw new IllegalStateException(
          stream
              + " is being captured into a graph, and each replay would copy through memory that is"
              + " used for other copies by then; copy before or after the capture");
    }
    return new HostCopies(stream.handle(), device.pinned(), device.context().driver().streams());
  }

  private void requireOwn(Tensor tensor) {
    if (!tensor.device().equals(device.device())) {
      throw new IllegalArgumentException(
          "the tensor is not on " + device + ": " + tensor.describe());
    }
    if (tensor.isSparse() || !tensor.isContiguous()) {
      throw new IllegalArgumentException(
          "the tensor must be dense and contiguous: " + tensor.describe());
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory of " + tensor.describe() + " was freed");
    }
  }

  private static void requireHost(Tensor tensor) {
    if (!tensor.device().isCpu() || tensor.isSparse()) {
      throw new IllegalArgumentException(
          "the tensor must be a dense host tensor: " + tensor.describe());
    }
  }

  private static void requireAlike(Tensor target, Tensor source) {
    if (target.dtype() != source.dtype() || target.numel() != source.numel()) {
      throw new IllegalArgumentException(
          "cannot copy " + source.describe() + " to " + target.describe());
    }
  }
}
