package dev.tutti.cuda;

import dev.tutti.cuda.access.CudaAccess;
import dev.tutti.cuda.access.DeviceKernels;
import dev.tutti.cuda.access.StreamReserve;
import dev.tutti.cuda.block.OpenBlocks;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.spi.Time;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The module's access to members that this package hides from users. */
final class Internals extends CudaAccess {
  @Override
  public CudaDriver driver(Cuda cuda) {
    return cuda.driver();
  }

  @Override
  public List<String> findings(Cuda cuda) {
    return cuda.findings();
  }

  @Override
  public String links(Cuda cuda, int device) {
    return cuda.links(device);
  }

  @Override
  public List<Runnable> sharing(Cuda cuda) {
    return cuda.sharing();
  }

  @Override
  public OpenBlocks openBlocks(Cuda cuda) {
    return cuda.openBlocks();
  }

  @Override
  public DeviceAllocator allocator(CudaDevice device) {
    return device.allocator();
  }

  @Override
  public DeviceContext context(CudaDevice device) {
    return device.context();
  }

  @Override
  public EventPool events(CudaDevice device) {
    return device.events();
  }

  @Override
  public DeviceKernels kernels(CudaDevice device) {
    return device.kernels();
  }

  @Override
  public Cuda owner(CudaDevice device) {
    return device.owner();
  }

  @Override
  public PinnedAllocator pinned(CudaDevice device) {
    return device.pinned();
  }

  @Override
  public StreamReserve reserve(CudaDevice device) {
    return device.reserve();
  }

  @Override
  public DeviceAllocator sharable(CudaDevice device) {
    return device.sharable();
  }

  @Override
  public boolean awaitAll(CudaDevice device, Time time, long deadlineNanos) {
    return device.awaitAll(time, deadlineNanos);
  }

  @Override
  public boolean isKnownReached(CudaEvent event) {
    return event.isKnownReached();
  }

  @Override
  public boolean isListed(CudaEvent event) {
    return event.isListed;
  }

  @Override
  public @Nullable CudaStream stream(CudaEvent event) {
    return event.stream();
  }

  @Override
  public BlockStream forBlocks(CudaStream stream) {
    return stream.forBlocks();
  }

  @Override
  public boolean awaitIdle(CudaStream stream, long deadlineNanos) {
    return stream.awaitIdle(deadlineNanos);
  }

  @Override
  public void setListed(CudaEvent event, boolean listed) {
    event.isListed = listed;
  }

  @Override
  public void recordIn(CudaEvent event, long stream) {
    event.recordIn(stream);
  }

  @Override
  public void takeForReached(CudaEvent event) {
    event.takeForReached();
  }

  @Override
  public void copy(CudaStream stream, long to, long from, long bytes) {
    stream.copy(to, from, bytes);
  }

  @Override
  public CudaEvent event(CudaDevice device) {
    return new CudaEvent(device);
  }

  @Override
  public CudaStream stream(CudaDevice device, long handle, boolean isForeign) {
    return new CudaStream(device, handle, isForeign);
  }
}
