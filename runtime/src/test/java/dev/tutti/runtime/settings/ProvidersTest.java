package dev.tutti.runtime.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StreamBlock;
import dev.tutti.runtime.group.LocalProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.StoreProvider;
import dev.tutti.spi.StreamBlockProvider;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(value = 300, threadMode = Timeout.ThreadMode.SAME_THREAD)
class ProvidersTest {
  private final ClassLoader before = Thread.currentThread().getContextClassLoader();
  @TempDir private Path folder;
  private URLClassLoader offers;

  /** The only backend that this thread finds. */
  public static final class Gloo extends LocalProvider {
    /** Creates the provider. */
    public Gloo() {}

    @Override
    public String name() {
      return "gloo";
    }
  }

  @BeforeEach
  void offerGloo() throws Exception {
    offer(BackendProvider.class, Gloo.class);
    offers = new URLClassLoader(new URL[] {folder.toUri().toURL()}, before);
    Thread.currentThread().setContextClassLoader(offers);
  }

  private void offer(Class<?> service, Class<?> provider) throws Exception {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(service.getName()), provider.getName());
  }

  @AfterEach
  void restore() throws Exception {
    Thread.currentThread().setContextClassLoader(before);
    offers.close();
  }

  private static final String OF_ANOTHER = "was built for SPI version 7, but this is version 1";

  @Test
  void refusesBackendsOfAnotherVersion() {
    LocalProvider backend =
        new LocalProvider() {
          @Override
          public int spiVersion() {
            return 7;
          }
        };
    Settings none = Settings.ofEnvironment(Map.of());
    assertThat(Providers.reasonAgainst(backend, none)).contains(OF_ANOTHER);
    assertThatThrownBy(() -> Providers.requireUsable(backend, none))
        .isInstanceOf(BackendException.class)
        .hasMessage("backend 'local' cannot run here: " + OF_ANOTHER);
  }

  /** A store of another version, found by its scheme. */
  public static final class OtherStore implements StoreProvider {
    /** Creates the provider. */
    public OtherStore() {}

    @Override
    public int spiVersion() {
      return 7;
    }

    @Override
    public String scheme() {
      return "other";
    }

    @Override
    public Store open(Request request) {
      throw new AssertionError("a store of another version was opened");
    }
  }

  /** A stream block of another version, found by its device type. */
  public static final class OtherBlock implements StreamBlockProvider {
    /** Creates the provider. */
    public OtherBlock() {}

    @Override
    public int spiVersion() {
      return 7;
    }

    @Override
    public String deviceType() {
      return "other";
    }

    @Override
    public StreamBlock block(Duration timeout) {
      throw new AssertionError("a stream block of another version was asked");
    }

    @Override
    public StreamBlock block(Device device, Duration timeout) {
      return block(timeout);
    }
  }

  @Test
  void refusesStoresOfAnotherVersion() throws Exception {
    offer(StoreProvider.class, OtherStore.class);
    GroupOptions options = GroupOptions.DEFAULT.withInitMethod("other://place?rank=0&world_size=1");
    assertThatThrownBy(() -> ProcessGroup.init(options))
        .isInstanceOf(RendezvousException.class)
        .hasMessage("store 'other' cannot run here: " + OF_ANOTHER);
  }

  @Test
  void refusesStreamBlocksOfAnotherVersion() throws Exception {
    offer(StreamBlockProvider.class, OtherBlock.class);
    assertThatThrownBy(() -> StreamBlock.block(new Device("other", 0), Duration.ofSeconds(1)))
        .isInstanceOf(BackendException.class)
        .hasMessage("stream block for 'other' cannot run here: " + OF_ANOTHER);
  }

  @ParameterizedTest
  @CsvSource({"glo", "Gloo", "goo", "gloop"})
  void namesTheBackendThatMayBeMeant(String written) {
    assertThatThrownBy(() -> Providers.backend(written, Settings.ofEnvironment(Map.of())))
        .isInstanceOf(BackendException.class)
        .hasMessage(
            "no backend '%s' on the class path; found [gloo]; did you mean 'gloo'?", written);
  }

  @Test
  void saysWhatIsMissingWhereNoneIsMeant() {
    assertThatThrownBy(() -> Providers.backend("nccl", Settings.ofEnvironment(Map.of())))
        .isInstanceOf(BackendException.class)
        .hasMessageStartingWith(
            "no backend 'nccl' on the class path; found [gloo]; add the jar tutti-backend-cuda");
  }
}
