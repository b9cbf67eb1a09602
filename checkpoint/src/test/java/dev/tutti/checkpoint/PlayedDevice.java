package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceStream;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A device whose memory holds the complement of each byte, so that only its copies make sense. */
public final class PlayedDevice implements DeviceTensors {
  static final Device DEVICE = new Device("played", 0);

  /** How many streams are taken. */
  static final AtomicInteger TAKEN = new AtomicInteger();

  /** Whether there are streams to take. */
  static volatile boolean hasStreams = true;

  private static final ThreadLocal<Stream> CURRENT = ThreadLocal.withInitial(Stream::new);

  /** A stream, of which only that matters whose end a copy to the host awaits. */
  static final class Stream implements DeviceStream {
    private final List<CompletableFuture<?>> work = new CopyOnWriteArrayList<>();

    /** Adds work that ends with a future. */
    void add(CompletableFuture<?> end) {
      work.add(end);
    }

    @Override
    public Stream makeCurrent() {
      Stream before = CURRENT.get();
      CURRENT.set(this);
      return before;
    }

    @Override
    public void waitFor(DeviceStream earlier) {
      work.addAll(((Stream) earlier).work);
    }

    @Override
    public void keep(Tensor tensor) {}

    @Override
    public void await(Duration timeout) {
      work.forEach(CompletableFuture::join);
    }

    @Override
    public boolean isCapturing() {
      return false;
    }
  }

  /** Creates a tensor with a value in each element. */
  static Tensor filled(DType dtype, double value, long... shape) {
    Tensor host = Tensor.allocate(dtype, shape).fill(value);
    PlayedDevice device = new PlayedDevice();
    Tensor tensor = device.allocate(Arena.ofAuto(), DEVICE, dtype, shape);
    device.copyFromHost(tensor, host);
    return tensor;
  }

  /** Returns a copy on the host. */
  static Tensor read(Tensor tensor) {
    Tensor host = Tensor.allocate(tensor.dtype(), tensor.shape());
    new PlayedDevice().copyToHost(host, tensor);
    return host;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return DEVICE.type();
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long... shape) {
    Tensor dense = Tensor.allocate(dtype, shape);
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      stride *= shape[i];
    }
    return Tensor.wrap(dense.segment(), dtype, shape, strides, device);
  }

  @Override
  public void zero(Tensor tensor) {
    tensor.segment().fill((byte) -1);
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    target.segment().copyFrom(source.segment());
  }

  @Override
  public Stream currentStream(Device device) {
    return CURRENT.get();
  }

  @Override
  public Optional<DeviceStream> takeStream(Device device) {
    if (!hasStreams) {
      return Optional.empty();
    }
    TAKEN.incrementAndGet();
    return Optional.of(new Stream());
  }

  @Override
  public void giveStream(DeviceStream stream) {
    TAKEN.decrementAndGet();
  }

  @Override
  public void copyToHost(Tensor host, Tensor source) {
    CURRENT.get().work.forEach(CompletableFuture::join);
    complement(host.segment(), source.segment());
  }

  @Override
  public void copyFromHost(Tensor target, Tensor host) {
    complement(target.segment(), host.segment());
  }

  private static void complement(MemorySegment target, MemorySegment source) {
    byte[] bytes = source.toArray(ValueLayout.JAVA_BYTE);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) ~bytes[i];
    }
    target.copyFrom(MemorySegment.ofArray(bytes));
  }
}
