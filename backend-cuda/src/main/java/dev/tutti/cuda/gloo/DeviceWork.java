package dev.tutti.cuda.gloo;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Setting;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.CudaBackend;
import dev.tutti.cuda.collective.CudaJoin;
import dev.tutti.cuda.collective.CudaWorld;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.kernels.Kernels;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Call;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The work of a Gloo group's collectives on the devices themselves, if the devices of all ranks can
 * access each other's memory (c10d: device work, on a transport with GPUDirect).
 */
public final class DeviceWork {
  /** Whether the devices of a host perform their ranks' operations themselves. */
  public static final Setting<Boolean> DIRECT =
      Setting.flag(
          "TUTTI_X_GLOO_CUDA_DIRECT",
          true,
          "whether collectives of CUDA tensors in a Gloo group run on the devices, if these reach"
              + " each other's memory and every rank names its device; false on any rank"
              + " turns this off on all");

  private static final System.Logger LOG = System.getLogger(DeviceWork.class.getName());

  private final CudaDevice device;
  private final CudaBackend backend;
  private final CudaStream stream;

  private DeviceWork(CudaDevice device, CudaBackend backend) {
    this.device = device;
    this.backend = backend;
    this.stream = Parts.of(device).takeStream();
  }

  /**
   * Meets the other ranks; returns null on all of them if their devices cannot access each other's
   * memory, or if one of them has this disabled.
   *
   * @param cuda provides the device
   * @param group the group, which all ranks open together
   */
  public static @Nullable DeviceWork join(Cuda cuda, GlooGroup group) {
    BackendContext context = group.context();
    long until = System.nanoTime() + context.timeout().toNanos();
    StoreExchange exchange =
        new StoreExchange(context.store(), "tutti/direct", context.rank(), context.size());
    boolean isWanted = context.settings().get(DIRECT) && context.size() > 1;
    if (!agree(exchange, isWanted && canOpen(cuda, context), until)) {
      return null;
    }
    CudaWorld world = null;
    try {
      world = CudaJoin.join(context, cuda);
    } catch (BackendException e) {
      LOG.log(
          e instanceof CudaException ? Level.WARNING : Level.DEBUG,
          "rank {0}: CUDA tensors of group {1} go through the host: {2}",
          context.rank(),
          context.group(),
          e.getMessage());
    }
    boolean good = false;
    try {
      good = agree(exchange, world != null, until);
    } finally {
      if (!good && world != null) {
        world.close();
      }
    }
    return good && world != null ? new DeviceWork(world.device(), new CudaBackend(world)) : null;
  }

  /**
   * Opens this rank's device; returns whether that succeeds, so that no other rank waits for one
   * that cannot take part.
   */
  private static boolean canOpen(Cuda cuda, BackendContext context) {
    try {
      CudaDevice _ = cuda.device(context.device().index());
      return true;
    } catch (BackendException e) {
      LOG.log(
          Level.WARNING,
          "rank {0}: CUDA tensors of group {1} go through the host because the device cannot be"
              + " opened: {2}",
          context.rank(),
          context.group(),
          e.getMessage());
      return false;
    }
  }

  private static boolean agree(StoreExchange exchange, boolean own, long until) {
    byte[] word = (own ? "yes" : "no").getBytes(StandardCharsets.UTF_8);
    return exchange.allGather(word, until).stream().allMatch(each -> each.length == 3);
  }

  /** Returns whether the devices support a call: the kernels cannot reduce some types. */
  static boolean does(Call call) {
    DType dtype = call.dtype();
    return call.reduceKind() == null
        || call.type() == OpType.ALL_REDUCE_SPARSE
        || dtype == null
        || (Kernels.isReducible(dtype) && call.reduceOp().isDefinedOn(dtype));
  }

  /** Returns whether a device is this rank's in the group. */
  boolean isOn(int deviceIndex) {
    return device.index() == deviceIndex;
  }

  /** Returns the stream in which the device runs operations. */
  CudaStream stream() {
    return stream;
  }

  /** Returns this rank's device. */
  CudaDevice device() {
    return device;
  }

  /** Returns the backend that runs operations in the current stream. */
  Backend backend() {
    return backend;
  }

  /**
   * Protects the memory of an operation that failed: work that finishes late still writes to it,
   * and the caller may free it now.
   */
  void keepWhatIsUsed() {
    DeviceCopy.keepAllFor(stream);
  }

  void abort(Throwable cause) {
    backend.abort(cause);
  }

  void close() {
    backend.close();
    if (HostWork.awaitIdle(stream, System.nanoTime() + HostWork.END_NANOS)) {
      Parts.of(device).giveStream(stream);
    }
  }
}
