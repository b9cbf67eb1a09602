package dev.tutti.cuda.provider;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclLibrary;
import dev.tutti.cuda.nccl.NcclTypes;
import dev.tutti.cuda.nccl.NcclWorld;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.tls.TlsSettings;
import java.lang.System.Logger.Level;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The provider of {@code nccl}: collectives and messages on CUDA devices of one or more hosts,
 * using this machine's NCCL, also together with PyTorch ranks. It must be requested by name.
 */
public final class NcclBackendProvider extends DeviceProvider {
  private static final System.Logger LOG = System.getLogger(NcclBackendProvider.class.getName());
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  /** What TLS does not cover here. */
  private static final String PLAIN =
      TlsSettings.ENABLED.name()
          + " encrypts the notes between ranks on nccl, but not what NCCL itself sends";

  private static final Capabilities CAPABILITIES = capabilitiesOfAll();

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. Loads nothing. */
  public NcclBackendProvider() {
    this(Cuda::get, Cuda::unusableReason, settings -> NcclLibrary.get(settings).calls());
  }

  /**
   * Creates a provider for other devices.
   *
   * @param cuda opens the CUDA driver
   * @param noDevice returns why the driver cannot be opened, if so
   * @param nccl opens NCCL
   */
  public NcclBackendProvider(
      Supplier<Cuda> cuda,
      Supplier<Optional<String>> noDevice,
      Function<Settings, NcclCalls> nccl) {
    super(cuda, noDevice, nccl);
  }

  private static Capabilities capabilitiesOfAll() {
    Capabilities all =
        capabilities(
                NcclTypes::isReducible,
                Feature.UNEVEN_PARTS,
                Feature.STREAM_ORDERED,
                Feature.DETECTS_DEAD_PEERS,
                Feature.RECONFIGURE)
            .without(OpType.RECV_ANY_SOURCE);
    EnumSet<ReduceOp.Kind> operators = EnumSet.copyOf(all.reduceOps());
    operators.removeIf(kind -> !NcclTypes.has(kind));
    return all.toBuilder().reduceOps(operators).build();
  }

  @Override
  public String name() {
    return "nccl";
  }

  /**
   * {@inheritDoc}
   *
   * <p>They do not reflect what depends on the group: with PyTorch ranks, or if {@code
   * TUTTI_NCCL_LAZY} is set, it rejects sums of sparse tensors.
   */
  @Override
  public Capabilities capabilities(String deviceType) {
    return CAPABILITIES;
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return false;
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    Optional<String> reason = noDevice.get();
    if (reason.isPresent()) {
      return reason;
    }
    try {
      NcclCalls _ = nccl.apply(settings);
      return Optional.empty();
    } catch (BackendException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(
        NcclLibrary.FILE,
        CudaSettings.NCCL_LAZY,
        TlsSettings.ENABLED,
        TlsSettings.CERTIFICATE,
        TlsSettings.KEY,
        TlsSettings.AUTHORITIES);
  }

  @Override
  public List<String> findings(Settings settings) {
    try {
      String library = NcclLibrary.get(settings).describe();
      return settings.get(TlsSettings.ENABLED) ? List.of(library, PLAIN) : List.of(library);
    } catch (BackendException e) {
      return List.of();
    }
  }

  /**
   * {@inheritDoc}
   *
   * @throws dev.tutti.RendezvousException if not all ranks arrive in time
   * @throws BackendException if NCCL rejects the group, for example because two ranks are on one
   *     device
   */
  @Override
  public Backend create(BackendContext context) {
    warn(context.settings());
    return NcclWorld.join(context, cuda.get(), nccl.apply(context.settings()));
  }

  /** Logs once, where ranks require encryption, that NCCL has none. */
  static void warn(Settings settings) {
    if (settings.get(TlsSettings.ENABLED) && !TOLD.getAndSet(true)) {
      LOG.log(Level.WARNING, PLAIN);
    }
  }
}
