package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntUnaryOperator;

/** A provider of gloo backends for ranks of this process that count as ranks on several hosts. */
class HostsProvider implements BackendProvider {
  private final GlooProvider gloo = new GlooProvider();
  private final Path directory;
  private final IntUnaryOperator hostOf;
  private final Queue<String> made = new ConcurrentLinkedQueue<>();

  /**
   * Creates the provider.
   *
   * @param directory the directory in which each host gets one of its own
   * @param hostOf returns the host of a rank of the group of all ranks
   */
  HostsProvider(Path directory, IntUnaryOperator hostOf) {
    this.directory = directory;
    this.hostOf = hostOf;
  }

  /** Returns how the backends created so far run collectives, in no particular order. */
  List<String> made() {
    return List.copyOf(made);
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return gloo.name();
  }

  @Override
  public Set<String> deviceTypes() {
    return gloo.deviceTypes();
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return gloo.capabilities(deviceType);
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return gloo.unusableReason(settings);
  }

  @Override
  public List<Setting<?>> settings() {
    return gloo.settings();
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    int host = hostOf.applyAsInt(context.globalRanks().get(context.rank()));
    Path shared = Files.createDirectories(directory.resolve("host" + host));
    Settings changed =
        context.settings().with(GlooProvider.SHARED_DIRECTORY.name(), shared.toString());
    Backend backend = gloo.create(context.withSettings(changed));
    made.add(backend.toString());
    return backend;
  }
}
