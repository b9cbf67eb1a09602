package dev.tutti.cuda.collective;

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
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.share.PeerMemory;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** One rank's view of symmetric memory on CUDA devices. */
final class CudaSymmetricMemory implements SymmetricMemory {
  /*
   * A waiting thread counts as a user of the memory. A thread that closes the memory ends the
   * waits; the last user to leave then frees the memory, so no kernel loses its pad.
   */

  private static final System.Logger LOG = System.getLogger(CudaSymmetricMemory.class.getName());

  private final CudaDevice device;
  private final PeerMemory memory;
  private final SymmetricPlan plan;
  private final boolean multicast;
  private final Consumer<CudaSymmetricMemory> onClose;
  private final Consumer<PeerMemory> free;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment[] buffers;
  private final SignalChannel[] channels = new SignalChannel[SymmetricPlan.CHANNELS];
  private final UserCount users = new UserCount();
  private final AtomicReference<@Nullable CudaStream> spare = new AtomicReference<>();
  private volatile @Nullable Throwable aborted;

  /**
   * Creates a rank's view.
   *
   * @param device this rank's device
   * @param memory the memory of all ranks; freed together with this view
   * @param plan the layout of the memory
   * @param multicast whether the device supports multicast and may report it
   * @param onClose called when this view is closed
   * @param free frees the memory
   */
  CudaSymmetricMemory(
      CudaDevice device,
      PeerMemory memory,
      SymmetricPlan plan,
      boolean multicast,
      Consumer<CudaSymmetricMemory> onClose,
      Consumer<PeerMemory> free) {
    this.device = device;
    this.memory = memory;
    this.plan = plan;
    this.multicast = multicast;
    this.onClose = onClose;
    this.free = free;
    long[] pads = new long[plan.size()];
    buffers = new MemorySegment[plan.size()];
    for (int r = 0; r < pads.length; r++) {
      pads[r] = memory.address(r);
      buffers[r] =
          MemorySegment.ofAddress(pads[r] + plan.padBytes())
              .reinterpret(plan.bufferBytes(), arena, null);
    }
    for (int c = 0; c < SymmetricPlan.CHANNELS; c++) {
      channels[c] = new SignalChannel(device, plan, c, pads, this::takeStream);
    }
    try {
      spare.set(Parts.of(device).takeStream());
    } catch (CudaException e) {
      LOG.log(Level.DEBUG, "cannot create a stream now; the first wait will create it", e);
    }
  }

  /**
   * Returns a stream for a channel. The first one already exists: creating a stream may wait for
   * kernels.
   */
  private CudaStream takeStream() {
    CudaStream stream = spare.getAndSet(null);
    return stream == null ? Parts.of(device).takeStream() : stream;
  }

  SymmetricPlan plan() {
    return plan;
  }

  /** Returns whether this rank's buffer contains an area. */
  boolean holds(long address, long bytes) {
    long offset = offset(address);
    return offset >= 0 && bytes <= plan.bufferBytes() && offset <= plan.bufferBytes() - bytes;
  }

  /** Returns the address by which this rank addresses an offset of a rank's buffer. */
  long address(int rank, long byteOffset) {
    return memory.address(rank) + plan.padBytes() + byteOffset;
  }

  /** Returns the offset of an address in this rank's buffer. */
  long offset(long address) {
    return address - memory.address(plan.rank()) - plan.padBytes();
  }

  /** Returns the address by which a rank addresses the given address of this rank's buffer. */
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
    return SymmetricPlan.CHANNELS;
  }

  /**
   * {@inheritDoc}
   *
   * <p>A view of a peer's buffer counts as memory of this rank's device, through which it is
   * addressed.
   */
  @Override
  public Tensor buffer(int rank, DType dtype, long byteOffset, long... shape) {
    if (users.isClosed()) {
      throw closed();
    }
    SymmetricChecks.rank(rank, plan.size());
    long bytes = SymmetricChecks.view(plan.bufferBytes(), dtype, byteOffset, shape);
    return BlockTensors.view(
        device.device(), buffers[rank].asSlice(byteOffset, bytes), dtype, shape);
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
    SymmetricChecks.channel(channel, SymmetricPlan.CHANNELS);
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

  /** Ends all waits, now and in the future. */
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
   * Returns whether the device supports multicast, unless {@code TORCH_SYMM_MEM_DISABLE_MULTICAST}
   * is set; multicast itself is never used.
   */
  @Override
  public boolean hasMulticast() {
    return multicast;
  }

  /**
   * {@inheritDoc}
   *
   * <p>All work on the buffers must be done before, both this rank's and that of peers that write
   * to its buffer.
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
      Parts.of(device).giveStream(unused);
    }
    free.accept(memory);
  }
}
