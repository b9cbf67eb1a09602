package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.driver.PointerInfo;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Makes, copies and wraps tensors of one device. Any thread may call any method; work goes to that
 * thread's current stream of the device.
 *
 * <p>The memory comes from an allocator that keeps what is freed. It belongs to the stream that was
 * current when the tensor was made; before a tensor is dropped, {@link #useOn} must name the other
 * streams that still work on it.
 */
public final class CudaTensors {
  private final CudaDevice device;

  CudaTensors(CudaDevice device) {
    this.device = device;
  }

  /**
   * Allocates memory of any content, freed when no tensor uses it any more.
   *
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   * @throws CudaException if the device has no room, with the numbers
   */
  public Tensor allocate(DType dtype, long... shape) {
    return allocate(Arena.ofAuto(), dtype, shape);
  }

  /**
   * Allocates memory of any content that lives as long as an arena.
   *
   * @param arena owns the memory; closing it does not wait for the device
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   * @throws CudaException if the device has no room, with the numbers
   */
  public Tensor allocate(Arena arena, DType dtype, long... shape) {
    DeviceAllocator allocator = device.allocator();
    return allocateFrom(allocator, _ -> {}, allocator::free, arena, dtype, shape);
  }

  /**
   * Allocates memory of an allocator of the device.
   *
   * @param allocator has the memory
   * @param made is told of it before there is a tensor
   * @param free frees it
   */
  Tensor allocateFrom(
      DeviceAllocator allocator,
      Consumer<DeviceBlock> made,
      Consumer<DeviceBlock> free,
      Arena arena,
      DType dtype,
      long... shape) {
    long bytes = byteSize(dtype, shape);
    DeviceBlock block = allocator.allocate(Math.max(bytes, 1), device.currentStream().forBlocks());
    made.accept(block);
    MemorySegment segment;
    try {
      segment =
          MemorySegment.ofAddress(block.address())
              .reinterpret(bytes, arena, _ -> free.accept(block));
    } catch (RuntimeException e) {
      free.accept(block);
      throw e;
    }
    return view(device, segment, dtype, shape);
  }

  /**
   * Views device memory of another library, without a copy.
   *
   * @param address where the memory begins
   * @param owner is kept reachable as long as a tensor views the memory; frees it afterwards
   * @param dtype element type
   * @param shape sizes in elements, outermost first
   * @throws IllegalArgumentException if the driver does not know the memory, it is another device's
   *     or on the host, or its allocation ends before the tensor does
   */
  public Tensor wrap(long address, Object owner, DType dtype, long... shape) {
    long bytes = byteSize(dtype, shape);
    device.context().enter();
    PointerInfo info = device.context().driver().memory().pointerInfo(address);
    String what = "address 0x" + Long.toHexString(address);
    if (info.kind() != PointerInfo.Kind.DEVICE && info.kind() != PointerInfo.Kind.MANAGED) {
      throw new IllegalArgumentException(
          what + " is not memory of " + device + ", but of kind " + info.kind());
    }
    if (info.device() != device.index()) {
      throw new IllegalArgumentException(
          what + " is not memory of " + device + ", but of cuda:" + info.device());
    }
    long left = info.rangeStart() + info.rangeBytes() - address;
    if (left < bytes) {
      throw new IllegalArgumentException(
          what + " has " + left + " bytes to the end of its allocation, not " + bytes);
    }
    MemorySegment segment =
        MemorySegment.ofAddress(address).reinterpret(bytes, Arena.ofAuto(), new Owner(owner));
    return view(device, segment, dtype, shape);
  }

  /** Reachable as long as a segment is that it is the clean-up of. */
  private record Owner(Object owner) implements Consumer<MemorySegment> {
    @Override
    public void accept(MemorySegment segment) {}
  }

  /** Views memory of a device as a contiguous tensor. */
  static Tensor view(CudaDevice device, MemorySegment segment, DType dtype, long... shape) {
    return Tensor.wrap(segment, dtype, shape, denseStrides(shape), device.device());
  }

  /**
   * Copies a tensor of the host to a new one of this device, on the current stream. The host's may
   * be changed as soon as this returns.
   *
   * @param host a dense tensor on the host
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public Tensor copyOf(Tensor host) {
    Tensor copy = allocate(host.dtype(), host.shape());
    copyFromHost(copy, host);
    return copy;
  }

  /**
   * Copies a tensor of the host into one of this device, on the current stream. The host's may be
   * changed as soon as this returns.
   *
   * @param target contiguous, of this device
   * @param host a dense tensor on the host, of the same type and number of elements
   * @throws TuttiException if the stream does not get there in 30 minutes
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public void copyFromHost(Tensor target, Tensor host) {
    requireOwn(target);
    requireHost(host);
    requireAlike(target, host);
    new HostCopies(device)
        .toDevice(target.segment().address(), host.contiguous().segment(), host.byteSize());
  }

  /**
   * Copies a tensor of this device to a new one of the host, behind the work of the current stream,
   * and waits for it.
   *
   * @param source contiguous, of this device
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public Tensor toHost(Tensor source) {
    Tensor host = Tensor.allocate(source.dtype(), source.shape());
    copyToHost(host, source);
    return host;
  }

  /**
   * Copies a tensor of this device into one of the host, behind the work of the current stream, and
   * waits for it.
   *
   * @param host contiguous, on the host
   * @param source contiguous, of this device, of the same type and number of elements
   * @throws TuttiException if the stream does not get there in 30 minutes
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public void copyToHost(Tensor host, Tensor source) {
    requireOwn(source);
    requireHost(host);
    requireAlike(host, source);
    if (!host.isContiguous()) {
      throw new IllegalArgumentException("the host's tensor must be contiguous: " + host);
    }
    new HostCopies(device).toHost(host.segment(), source.segment().address(), source.byteSize());
  }

  /**
   * Says that another stream works on a tensor that was made here; its memory is then used again
   * only after what that stream does now is done.
   *
   * @param tensor of this device
   * @param stream the other stream, also one of another device
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
      throw new IllegalArgumentException("was not allocated here: " + tensor.describe());
    }
    allocator.useOn(block, stream.forBlocks());
  }

  /** Returns the bytes of tensors that are in use. */
  public long usedBytes() {
    return device.allocator().usage().usedBytes();
  }

  /** Returns the bytes that the driver gave, in use or kept for use again. */
  public long reservedBytes() {
    return device.allocator().usage().reservedBytes();
  }

  /**
   * Gives what is kept for use again back to the driver, as far as its streams are done with it.
   */
  public void releaseCached() {
    device.allocator().releaseCached();
  }

  /**
   * Adds a listener that is called when the device is full, before an allocation fails.
   *
   * @param listener frees what can be done without; called on the thread that allocates
   * @return removes it when closed
   */
  public Registration onPressure(MemoryPressureListener listener) {
    return device.allocator().addListener(listener);
  }

  private void requireOwn(Tensor tensor) {
    if (!tensor.device().equals(device.device())) {
      throw new IllegalArgumentException("is not on " + device + ": " + tensor.describe());
    }
    if (tensor.isSparse() || !tensor.isContiguous()) {
      throw new IllegalArgumentException("must be dense and contiguous: " + tensor.describe());
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory was freed of " + tensor.describe());
    }
  }

  private static void requireHost(Tensor tensor) {
    if (!tensor.device().isCpu() || tensor.isSparse()) {
      throw new IllegalArgumentException(
          "must be a dense tensor of the host: " + tensor.describe());
    }
  }

  private static void requireAlike(Tensor target, Tensor source) {
    if (target.dtype() != source.dtype() || target.numel() != source.numel()) {
      throw new IllegalArgumentException(
          "cannot copy " + source.describe() + " to " + target.describe());
    }
  }

  private static long byteSize(DType dtype, long[] shape) {
    long numel = 1;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("size must not be negative: " + Arrays.toString(shape));
      }
      numel = Math.multiplyExact(numel, size);
    }
    return Math.multiplyExact(numel, dtype.byteSize());
  }

  private static long[] denseStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      stride *= Math.max(shape[i], 1);
    }
    return strides;
  }
}
