package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Device;
import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.backend.DeviceBackends;
import dev.tutti.gloo.backend.GlooBackend;
import dev.tutti.gloo.backend.SocketBackend;
import dev.tutti.gloo.backend.Wire;
import dev.tutti.gloo.shm.LoneBackend;
import dev.tutti.gloo.shm.SymmetricMemories;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.TransportRendezvous;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.spi.SelectorProvider;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The provider of the {@code gloo} backend: collectives between CPUs over TCP in Gloo's wire
 * protocol, so that ranks of PyTorch 2.3 and later can take part.
 */
public final class GlooProvider implements BackendProvider {
  /**
   * Whether two ranks connect only when they first exchange a message, as PyTorch ranks with this
   * setting do.
   */
  public static final Setting<Boolean> LAZY_INIT =
      Setting.flag(
          "TORCH_GLOO_LAZY_INIT",
          false,
          "PyTorch ranks connect on first use; must be the same on all ranks");

  /** Whether ranks identify themselves to each other by their rank number. */
  public static final Setting<Boolean> RANK_AS_SEQUENCE =
      Setting.flag(
          "GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER",
          false,
          "ranks identify themselves to each other by rank number; must be the same on all ranks");

  /** How long a waiting thread polls its connections before it blocks. */
  public static final Setting<Duration> SPIN =
      Setting.duration(
          "TUTTI_X_GLOO_SPIN",
          Duration.ofMillis(1),
          "how long a waiting thread polls before it blocks, if there are enough cores");

  /** How much memory the ranks of a host share. */
  public static final Setting<Long> SHARED_BYTES =
      Setting.bytes(
          GlooBackend.SHARED_BYTES,
          "16M",
          "size of the memory that the ranks of a group share on one host; 0 to use sockets; must"
              + " be the same on all ranks");

  /** The directory in which the file of the shared memory is created. */
  public static final Setting<String> SHARED_DIRECTORY =
      Setting.text(
          "TUTTI_GLOO_SHARED_DIR",
          "/dev/shm",
          "in-memory file system for shared memory; ranks with different ones share no memory");

  /** Whether ranks of a host share memory if other ranks of the group are on other hosts. */
  public static final Setting<Boolean> TWO_LEVEL =
      Setting.flag(
          "TUTTI_X_GLOO_TWO_LEVEL",
          true,
          "ranks on one host share memory even if the group spans several hosts; false on any rank"
              + " turns it off");

  /** Which algorithms Tutti ranks use over sockets. */
  public static final Setting<AlgorithmTable> ALGORITHMS =
      Setting.of(
          "TUTTI_X_GLOO_ALGORITHMS",
          "",
          "algorithms by operation and size in bytes, such as"
              + " allReduce=recursive-doubling:16K,ring;allGather=ring; rank 0's setting applies",
          AlgorithmTable.DEFAULT::with);

  private static final String ALGORITHMS_KEY = "algorithms";
  private static final int MAX_TABLE_BYTES = 16 * 1024;

  private static final Capabilities CAPABILITIES =
      Capabilities.ofVersion1().toBuilder()
          .algorithms(RequestedAlgorithm.labels())
          .features(
              EnumSet.of(
                  Feature.UNEVEN_PARTS,
                  Feature.TAGS,
                  Feature.SYMMETRIC_MEMORY,
                  Feature.DETECTS_DEAD_PEERS,
                  Feature.RECONFIGURE))
          .build();

  private final SelectorProvider channels;

  /** Where ranks listen; null to choose by the settings. */
  private final @Nullable InetAddress address;

  private volatile @Nullable Map<String, GlooDeviceProvider> devices;

  /** Creates the provider; called by {@link java.util.ServiceLoader}. */
  public GlooProvider() {
    this(SelectorProvider.provider(), null);
  }

  /**
   * Creates a provider whose ranks use channels of another kind than those of the system.
   *
   * @param channels opens the channels
   * @param address the address at which a rank listens; null to choose one by the settings
   */
  public GlooProvider(SelectorProvider channels, @Nullable InetAddress address) {
    this.channels = channels;
    this.address = address;
  }

  /**
   * Creates a provider that serves further kinds of device through the given providers.
   *
   * @param others providers of kinds of device other than {@code cpu}, one each
   */
  public GlooProvider(List<GlooDeviceProvider> others) {
    this();
    this.devices = DeviceProviders.byType(others);
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "gloo";
  }

  /** Returns {@code cpu} and the kinds of device that other modules serve. */
  @Override
  public Set<String> deviceTypes() {
    Set<String> types = new TreeSet<>(devices().keySet());
    types.add(Device.CPU.type());
    return types;
  }

  private Map<String, GlooDeviceProvider> devices() {
    Map<String, GlooDeviceProvider> known = devices;
    if (known == null) {
      known = DeviceProviders.find();
      devices = known;
    }
    return known;
  }

  @Override
  public boolean isOneForAllDevices() {
    return true;
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return deviceType.equals(Device.CPU.type());
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    GlooDeviceProvider other = devices().get(deviceType);
    return other == null ? CAPABILITIES : other.capabilities(CAPABILITIES);
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    try {
      BindAddress.choose(settings);
      return Optional.empty();
    } catch (IOException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  @Override
  public List<String> findings(Settings settings) {
    try {
      BindAddress chosen = BindAddress.choose(settings);
      String where =
          chosen.interfaceName().isEmpty() ? "" : " on interface " + chosen.interfaceName();
      return List.of(
          "would listen at "
              + chosen.address().getHostAddress()
              + where
              + (chosen.address().isLoopbackAddress()
                  ? ", which only ranks of this host can reach"
                  : "")
              + ": "
              + chosen.reason()
              + " (to choose another, set "
              + BindAddress.INTERFACE.name()
              + ")",
          "between Tutti ranks, over sockets: "
              + settings.get(ALGORITHMS)
              + " (to choose others, set "
              + ALGORITHMS.name()
              + ")",
          settings.get(TWO_LEVEL)
              ? "if a host has several Tutti ranks: two levels, shared memory within a host"
                  + " and these algorithms between hosts (to turn this off, set "
                  + TWO_LEVEL.name()
                  + "=false)"
              : "if a host has several Tutti ranks: one level, because "
                  + TWO_LEVEL.name()
                  + " is false",
          TlsSettings.describe(settings));
    } catch (IOException e) {
      return List.of();
    }
  }

  @Override
  public List<Setting<?>> settings() {
    List<Setting<?>> all = new ArrayList<>(TlsSettings.all());
    all.addAll(
        List.of(
            BindAddress.INTERFACE,
            BindAddress.MASTER_ADDR,
            LAZY_INIT,
            RANK_AS_SEQUENCE,
            SPIN,
            ALGORITHMS,
            TWO_LEVEL,
            SHARED_BYTES,
            SHARED_DIRECTORY,
            RemoteMemory.SETTING,
            JobToken.SETTING));
    devices().values().forEach(each -> all.addAll(each.settings()));
    return List.copyOf(all);
  }

  @Override
  public Optional<OperationPlan> plan(PlanRequest request) {
    Settings settings = request.settings();
    return GlooPlans.plan(
        request, settings.get(ALGORITHMS), settings.get(SHARED_BYTES), settings.get(TWO_LEVEL));
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    long deadline = context.deadlineNanos();
    Settings settings = context.settings();
    TransportRendezvous rendezvous =
        new TransportRendezvous(
            context,
            address == null ? BindAddress.choose(settings).address() : address,
            channels,
            settings.get(LAZY_INIT),
            settings.get(RANK_AS_SEQUENCE));
    Transport transport = rendezvous.connect(settings.get(SPIN));
    SharedHost sharedHost = null;
    try {
      Wire wire = new Wire(transport);
      GlooBackend backend;
      if (!rendezvous.isAllTutti()) {
        backend = SocketBackend.withPytorch(wire);
      } else if (context.size() == 1) {
        backend = alone(context, wire);
      } else {
        sharedHost = meetOnHost(context, rendezvous, transport, deadline).orElse(null);
        backend = create(context, wire, sharedHost, rendezvous.isCrowded());
      }
      backend.serveDevices(new DeviceBackends(devices(), context, rendezvous.isAllTutti()));
      return backend;
    } catch (Exception | Error e) {
      transport.abort(e);
      transport.close();
      if (sharedHost != null) {
        sharedHost.close();
      }
      throw e;
    }
  }

  private static GlooBackend create(
      BackendContext context, Wire wire, @Nullable SharedHost sharedHost, boolean crowded) {
    Settings settings = context.settings();
    if (sharedHost == null) {
      return new SocketBackend(
          wire, agreed(context, GlooPlans.table(settings.get(ALGORITHMS), crowded)));
    }
    return sharedHost.isOneHost()
        ? sharedHost.inMemory(
            wire, settings.get(RemoteMemory.SETTING), settings.get(SharedHeap.SETTING))
        : sharedHost.onTwoLevels(
            wire, agreed(context, GlooPlans.table(settings.get(ALGORITHMS), false)));
  }

  /**
   * Returns the table of rank 0, so that ranks with different settings do not wait for each other.
   */
  private static AlgorithmTable agreed(BackendContext context, AlgorithmTable own) {
    // Rank 0 reads it too: ranks that use different tables would get wrong sums.
    byte[] agreed =
        context
            .bootstrap()
            .broadcast(
                ALGORITHMS_KEY,
                0,
                own.toString().getBytes(StandardCharsets.UTF_8),
                "publish its algorithms",
                context.deadlineNanos());
    try {
      if (agreed.length > MAX_TABLE_BYTES) {
        throw new IllegalArgumentException(agreed.length + " bytes");
      }
      return AlgorithmTable.DEFAULT.with(new String(agreed, StandardCharsets.UTF_8));
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(
          "rank "
              + context.rank()
              + " of group "
              + context.group()
              + " cannot read the algorithms that rank 0 published: "
              + e.getMessage(),
          e);
    }
  }

  private static GlooBackend alone(BackendContext context, Wire wire) {
    Settings settings = context.settings();
    AlgorithmTable table = settings.get(ALGORITHMS);
    if (settings.get(SHARED_BYTES) == 0) {
      return new SocketBackend(wire, table);
    }
    Path directory = Path.of(settings.get(SHARED_DIRECTORY));
    return new LoneBackend(
        wire, table, new SymmetricMemories(null, wire.transport(), context.group(), directory, 0));
  }

  private static Optional<SharedHost> meetOnHost(
      BackendContext context, TransportRendezvous rendezvous, Transport transport, long deadline)
      throws Exception {
    Settings settings = context.settings();
    HostRendezvous host =
        new HostRendezvous(
            context,
            Path.of(settings.get(SHARED_DIRECTORY)),
            settings.get(SHARED_BYTES),
            settings.get(TWO_LEVEL),
            deadline);
    return host.meet(transport, rendezvous.spinNanos(settings.get(SPIN)));
  }
}
