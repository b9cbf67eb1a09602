package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupClosedException;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cpu.SymmetricChecks;
import dev.tutti.cpu.memory.UserCount;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.share.PeerMemory;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** One rank's view of symmetric memory on devices. */
final class CudaSymmetricMemory implements SymmetricMemory {
  /*
   * A thread that waits counts itself as a user. A thread that closes the memory ends the waits; the memory goes
   * with whoever then is last, so no kernel loses its pad.
   */
  static final int CHANNELS = 32;

  private static final System.Logger LOG = System.getLogger(CudaSymmetricMemory.class.getName());

  private final CudaDevice device;
  private final PeerMemory memory;
  private final SymmetricPlan plan;
  private final boolean multicast;
  private final Consumer<CudaSymmetricMemory> onClose;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment[] buffers;
  private final SignalChannel[] channels = new SignalChannel[CHANNELS];
  private final UserCount users = new UserCount();
  private final AtomicReference<@Nullable CudaStream> spare = new AtomicReference<>();
  private volatile @Nullable Throwable aborted;

  /**
   * Creates a rank's view.
   *
   * @param device of this rank
   * @param memory of all ranks; closed with this
   * @param plan how it is divided
   * @param multicast whether the device could, and may be said to
   * @param onClose is told of the close
   */
  CudaSymmetricMemory(
      CudaDevice device,
      PeerMemory memory,
      SymmetricPlan plan,
      boolean multicast,
      Consumer<CudaSymmetricMemory> onClose) {
    this.device = device;
    this.memory = memory;
    this.plan = plan;
    this.multicast = multicast;
    this.onClose = onClose;
    long[] pads = new long[plan.size()];
    buffers = new MemorySegment[plan.size()];
    for (int r = 0; r < pads.length; r++) {
      pads[r] = memory.address(r);
      buffers[r] =
          MemorySegment.ofAddress(pads[r] + plan.padBytes())
              .reinterpret(plan.bufferBytes(), arena, null);
    }
    for (int c = 0; c < CHANNELS; c++) {
      channels[c] = new SignalChannel(device, plan, c, pads, this::takeStream);
    }
    try {
      spare.set(access().reserve(device).take());
    } catch (CudaException e) {
      LOG.log(Level.DEBUG, "the first wait makes its stream", e);
    }
  }

  /** Returns a stream for a channel. The first one is there: to make one may wait for kernels. */
  private CudaStream takeStream() {
    CudaStream stream = spare.getAndSet(null);
    return stream == null ? access().reserve(device).take() : stream;
  }

  SymmetricPlan plan() {
    return plan;
  }

  /** Tells whether this rank's buffer holds an area. */
  boolean holds(long address, long bytes) {
    long offset = address - memory.address(plan.rank()) - plan.padBytes();
    return offset >= 0 && bytes <= plan.bufferBytes() && offset <= plan.bufferBytes() - bytes;
  }

  /** Returns where a rank addresses what is at an address of this rank's buffer. */
  long addressFor(int rank, long address) {
    return memory.view(rank) + address - memory.address(plan.rank());
  }

  @Override
  public int rank() {
    return plan.rank();
  }

  @Override
  public int size() {
    return plan.size();
  }

  @Override
  public Device device() {
    return device.device();
  }

  @Override
  public long bufferByteSize() {
    return plan.bufferBytes();
  }

  @Override
  public int channels() {
    return CHANNELS;
  }

  /**
   * {@inheritDoc}
   *
   * <p>A view of a peer's buffer counts as one of this rank's device, which addresses it.
   */
  @Override
  public Tensor buffer(int rank, DType dtype, long byteOffset, long... shape) {
    if (users.isClosed()) {
      throw closed();
    }
    SymmetricChecks.rank(rank, plan.size());
    long bytes = SymmetricChecks.view(plan.bufferBytes(), dtype, byteOffset, shape);
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= Math.max(1, shape[d]);
    }
    return Tensor.wrap(
        buffers[rank].asSlice(byteOffset, bytes), dtype, shape, strides, device.device());
  }

  @Override
  public void barrier(int channel, Duration timeout) {
    use(channel, signals -> signals.barrier(timeout));
  }

  @Override
  public void putSignal(int rank, int channel, Duration timeout) {
    SymmetricChecks.rank(rank, plan.size());
    use(channel, signals -> signals.put(rank, timeout));
  }

  @Override
  public void waitSignal(int rank, int channel, Duration timeout) {
    SymmetricChecks.rank(rank, plan.size());
    use(channel, signals -> signals.take(rank, timeout));
  }

  private void use(int channel, Consumer<SignalChannel> action) {
    SymmetricChecks.channel(channel, CHANNELS);
    if (!users.enter()) {
      throw closed();
    }
    try {
      throwIfAborted();
      action.accept(channels[channel]);
    } catch (SignalChannel.CancelledWaitException e) {
      throwIfAborted();
      throw closed();
    } finally {
      leave();
    }
  }

  private void throwIfAborted() {
    Throwable cause = aborted;
    if (cause instanceof TuttiException failure) {
      throw failure;
    }
    if (cause != null) {
      throw new TuttiException(String.valueOf(cause.getMessage()), cause);
    }
  }

  private GroupClosedException closed() {
    return new GroupClosedException("symmetric memory of rank " + plan.rank() + " is closed");
  }

  /** Ends all waits, now and from now on. */
  void abort(Throwable cause) {
    aborted = cause;
    if (users.enter()) {
      cancel();
      leave();
    }
  }

  private void cancel() {
    for (SignalChannel channel : channels) {
      channel.cancel();
    }
  }

  /**
   * Tells whether the device could, unless {@code TORCH_SYMM_MEM_DISABLE_MULTICAST} is set; it is
   * never done.
   */
  @Override
  public boolean hasMulticast() {
    return multicast;
  }

  /**
   * {@inheritDoc}
   *
   * <p>Work on the buffers, of this rank and of peers that write to its own, must be done before.
   */
  @Override
  public void close() {
    if (users.close()) {
      onClose.accept(this);
      cancel();
      leave();
    }
  }

  private void leave() {
    if (users.leave()) {
      free();
    }
  }

  private void free() {
    arena.close();
    for (SignalChannel channel : channels) {
      channel.close();
    }
    CudaStream unused = spare.getAndSet(null);
    if (unused != null) {
      access().reserve(device).give(unused);
    }
    memory.close();
  }
}
