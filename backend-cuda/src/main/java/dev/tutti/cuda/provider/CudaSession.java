package dev.tutti.cuda.provider;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.spi.DeviceSession;
import java.lang.foreign.Arena;
import java.time.Duration;

/** A thread's use of a CUDA device, on a stream of the pool. */
public final class CudaSession implements DeviceSession {
  private static final double NANOS_PER_MILLI = 1e6;

  private final CudaDevice device;
  private final CudaDriver driver;
  private final CudaStream stream;
  private final CudaStream.Scope scope;
  private final long start;
  private final long stop;

  public CudaSession(CudaDevice device) {
    this.device = device;
    this.driver = Parts.of(device).context().driver();
    this.stream = device.poolStream();
    Parts.of(device).context().enter();
    this.start = driver.events().create(EventCalls.Purpose.TIMING);
    this.stop = driver.events().create(EventCalls.Purpose.TIMING);
    this.scope = stream.use();
  }

  @Override
  public Device device() {
    return device.device();
  }

  @Override
  public Tensor allocate(Arena arena, DType dtype, long... shape) {
    return device.tensors().allocate(arena, dtype, shape);
  }

  @Override
  public void copyFromHost(Tensor target, Tensor host) {
    device.tensors().copyFromHost(target, host);
  }

  @Override
  public void copyToHost(Tensor host, Tensor source) {
    device.tensors().copyToHost(host, source);
  }

  @Override
  public Duration time(Runnable work, Duration limit) {
    Parts.of(device).context().enter();
    driver.events().record(start, stream.handle());
    work.run();
    Parts.of(device).context().enter();
    driver.events().record(stop, stream.handle());
    stream.await(limit);
    return Duration.ofNanos(
        Math.round(driver.events().elapsedMillis(start, stop) * NANOS_PER_MILLI));
  }

  @Override
  public Recording record(Runnable work) {
    GraphCalls graphs = driver.graphs();
    Parts.of(device).context().enter();
    graphs.beginCapture(stream.handle());
    try {
      work.run();
    } catch (RuntimeException | Error e) {
      abandon(e);
      throw e;
    }
    Parts.of(device).context().enter();
    long graph = graphs.endCapture(stream.handle());
    long executable;
    try {
      executable = graphs.instantiate(graph);
    } finally {
      graphs.destroy(graph);
    }
    return new Graph(executable);
  }

  /** Ends a capture that failed and may have been invalidated. */
  private void abandon(Throwable failure) {
    Parts.of(device).context().enter();
    GraphCalls graphs = driver.graphs();
    try {
      graphs.destroy(graphs.endCapture(stream.handle()));
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  @Override
  public void close() {
    scope.close();
    Parts.of(device).context().enter();
    driver.events().destroy(start);
    driver.events().destroy(stop);
  }

  private final class Graph implements Recording {
    private final long executable;

    Graph(long executable) {
      this.executable = executable;
    }

    @Override
    public void replay() {
      Parts.of(device).context().enter();
      driver.graphs().launch(executable, stream.handle());
    }

    @Override
    public void close() {
      Parts.of(device).context().enter();
      driver.graphs().destroyExecutable(executable);
    }
  }
}
