package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.FarRanksException;
import dev.tutti.cuda.share.IpcChannel;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.cuda.share.PeerMemory;
import dev.tutti.cuda.share.PeerNotes;
import dev.tutti.cuda.share.PeerWorld;
import dev.tutti.cuda.share.Sharing;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.PeerLinks;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Printable;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The steps by which a rank joins a group on CUDA devices. */
public final class CudaJoin {
  private static final System.Logger LOG = System.getLogger(CudaJoin.class.getName());

  /** What a rank has ready, by itself, before it shares anything. */
  private record Prepared(
      Sharing sharing, @Nullable MemoryPlan plan, @Nullable HostKernels kernels) {}

  private final BackendContext context;
  private final Settings settings;
  private final Cuda cuda;
  private final CudaDevice device;
  private final CudaDriver driver;
  private final StoreExchange exchange;
  private final long until;
  private List<CudaStream> streams = List.of();
  private @Nullable IpcChannel channel;
  private @Nullable RankNotes notes;
  private @Nullable PeerMemory memory;

  private CudaJoin(BackendContext context, Cuda cuda) {
    this.until = System.nanoTime() + context.timeout().toNanos();
    this.context = context;
    this.settings = context.settings();
    this.cuda = cuda;
    requireSupported();
    this.device = cuda.device(context.device().index());
    this.driver = Parts.of(cuda).driver();
    this.exchange = new StoreExchange(context.store(), "cuda", context.rank(), context.size());
  }

  private void requireSupported() {
    if (context.size() > ChannelLayout.MAX_RANKS) {
      throw new FarRanksException(
          "rank %s: a group on CUDA devices can have %s ranks at most, not %s"
              .formatted(context.rank(), ChannelLayout.MAX_RANKS, context.size()));
    }
    String _ = settings.get(CudaSettings.SYMMETRIC_MEMORY); // rejects invalid values
  }

  /**
   * Meets the other ranks and shares memory with them.
   *
   * @throws FarRanksException on all ranks, if there are too many ranks or they are on several
   *     hosts
   * @throws BackendException if the ranks cannot share memory
   */
  public static CudaWorld join(BackendContext context, Cuda cuda) {
    return new CudaJoin(context, cuda).join();
  }

  private CudaWorld join() {
    List<PeerInfo> ranks = PeerInfo.meet(exchange, own(), until);
    boolean hasJoined = false;
    try {
      Prepared prepared = prepare(ranks);
      IpcChannel opened = openChannel();
      PeerWorld peers = peers(opened, ranks, prepared.sharing);
      CudaWorld world = create(opened, peers, share(peers, prepared));
      hasJoined = true;
      agree(world);
      return world;
    } finally {
      if (!hasJoined) {
        giveBack();
      }
    }
  }

  private PeerInfo own() {
    PeerInfo own =
        PeerInfo.here(
            driver.devices().pciBusId(device.index()),
            settings.get(CudaSettings.OVERLAPPING_DEVICES),
            driver.devices().attribute(device.index(), DeviceAttribute.MULTIPROCESSORS),
            choices(),
            Parts.of(cuda).links(device.index()));
    HardwareQueues.warning(settings)
        .ifPresent(text -> LOG.log(Level.WARNING, "rank {0}: {1}", context.rank(), text));
    return own;
  }

  /**
   * Returns the settings that must be the same on all ranks and whose differences would not be
   * noticed otherwise.
   */
  private String choices() {
    AllReduceLimits limits = CudaSettings.limits(settings, context.size(), PeerLinks.SWITCH);
    return "%s=%s %s=%s %s=%s %s=%s"
        .formatted(
            CudaSettings.ONE_SHOT_BYTES.name(),
            limits.oneShotBytes(),
            CudaSettings.TWO_SHOT_BYTES.name(),
            limits.twoShotBytes(),
            CudaSettings.COPIES_BYTES.name(),
            settings.get(CudaSettings.COPIES_BYTES),
            CudaSettings.COPIES_PIECE_BYTES.name(),
            settings.get(CudaSettings.COPIES_PIECE_BYTES));
  }

  private Prepared prepare(List<PeerInfo> ranks) {
    try {
      Sharing sharing = Sharing.choose(settings.get(CudaSettings.SHARING), driver, device.index());
      PeerAccess.require(cuda, device, ranks, sharing, context.rank());
      boolean isAlone = context.size() == 1;
      MemoryPlan plan = isAlone ? null : MemoryPlan.of(settings, ranks);
      HostKernels kernels = isAlone ? null : new HostKernels(device);
      streams = Parts.of(device).takeStreams(2 * (context.size() - 1) + 1);
      return new Prepared(sharing, plan, kernels);
    } catch (BackendException e) {
      // Only this rank sees this failure; the others would wait for it until their deadline.
      IpcChannel.refuse(exchange, e, until);
      throw e;
    }
  }

  private IpcChannel openChannel() {
    Path directory = Path.of(settings.text("TMPDIR").orElse("/tmp"));
    IpcChannel opened = IpcChannel.open(directory, exchange, until);
    channel = opened;
    return opened;
  }

  private PeerWorld peers(IpcChannel opened, List<PeerInfo> ranks, Sharing sharing) {
    return new PeerWorld(
        Parts.of(device).context(),
        streams.get(0).handle(),
        exchange,
        opened,
        ranks,
        sharing,
        Parts.of(device).allocator()::makeRoom);
  }

  private @Nullable SharedParts share(PeerWorld peers, Prepared prepared) {
    if (prepared.plan == null || prepared.kernels == null) {
      return null;
    }
    RankNotes connected = PeerNotes.connect(context, until);
    notes = connected;
    PeerMemory allocated = PeerMemory.allocate(peers, prepared.plan.bytes(), 0, until);
    memory = allocated;
    return new SharedParts(prepared.plan, prepared.kernels, connected, allocated);
  }

  /** Creates this rank's world; if that fails, the other ranks get the reason. */
  private CudaWorld create(IpcChannel opened, PeerWorld peers, @Nullable SharedParts shared) {
    try {
      return new CudaWorld(context, device, opened, streams, peers, shared);
    } catch (RuntimeException | Error e) {
      BackendException told = refusal(e);
      byte[] text = String.valueOf(told.getMessage()).getBytes(StandardCharsets.UTF_8);
      List<byte[]> _ = exchange.allGather(text, until);
      throw told;
    }
  }

  private BackendException refusal(Throwable e) {
    return e instanceof BackendException known
        ? known
        : new BackendException(
            "rank " + context.rank() + ": cannot join a group on CUDA devices: " + e, e);
  }

  /** Closes the world and fails if any rank could not create its own. */
  private void agree(CudaWorld world) {
    try {
      List<byte[]> problems = exchange.allGather(new byte[0], until);
      for (int r = 0; r < problems.size(); r++) {
        if (problems.get(r).length > 0) {
          throw new BackendException(
              "rank %s: rank %s cannot join: %s"
                  .formatted(context.rank(), r, Printable.decode(problems.get(r))));
        }
      }
    } catch (RuntimeException e) {
      world.close();
      throw e;
    }
  }

  private void giveBack() {
    if (channel != null) {
      channel.close();
    }
    if (notes != null) {
      notes.close();
    }
    if (memory != null) {
      memory.close();
    }
    streams.forEach(Parts.of(device)::giveStream);
  }
}
