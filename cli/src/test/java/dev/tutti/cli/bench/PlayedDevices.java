package dev.tutti.cli.bench;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The provider of a backend with two devices that a test simulates; only tests that name it find
 * it.
 */
public final class PlayedDevices implements BackendProvider {
  /** The number of measurements on all devices. */
  static final AtomicLong TIMES = new AtomicLong();

  /** The device that cannot be opened; negative for none. */
  static volatile int unopened = -1;

  /** The device that has no memory; negative for none. */
  static volatile int full = -1;

  private final BackendProvider threaded = new ThreadedProvider();

  /** Creates the provider. */
  public PlayedDevices() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "played";
  }

  @Override
  public Set<String> deviceTypes() {
    return threaded.deviceTypes();
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return threaded.capabilities(deviceType);
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return false;
  }

  @Override
  public int deviceCount() {
    return 2;
  }

  @Override
  public DeviceSession openDevice(int index) {
    if (index == unopened) {
      throw new BackendException("device " + index + " cannot be opened");
    }
    return new Session(index);
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    return threaded.create(context);
  }

  /** A session that works on the calling thread and in host memory. */
  private static final class Session implements DeviceSession {
    private final int index;

    Session(int index) {
      this.index = index;
    }

    @Override
    public Device device() {
      return Device.CPU;
    }

    @Override
    public Tensor allocate(Arena arena, DType dtype, long... shape) {
      if (index == full) {
        throw new BackendException("device " + index + " is full");
      }
      return Tensor.allocate(dtype, shape);
    }

    @Override
    public void copyFromHost(Tensor target, Tensor host) {
      target.copyFrom(host);
    }

    @Override
    public void copyToHost(Tensor host, Tensor source) {
      host.copyFrom(source);
    }

    @Override
    public Duration time(Runnable work, Duration limit) {
      TIMES.incrementAndGet();
      long start = System.nanoTime();
      work.run();
      return Duration.ofNanos(System.nanoTime() - start);
    }

    @Override
    public Recording record(Runnable work) {
      return new Recording() {
        @Override
        public void replay() {
          work.run();
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public void close() {}
  }
}
