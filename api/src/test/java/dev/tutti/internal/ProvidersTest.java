package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SAME_THREAD)
class ProvidersTest {
  private final ClassLoader before = Thread.currentThread().getContextClassLoader();
  @TempDir private Path folder;
  private URLClassLoader offers;

  /** Is the one backend that this thread finds. */
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
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(BackendProvider.class.getName()), Gloo.class.getName());
    offers = new URLClassLoader(new URL[] {folder.toUri().toURL()}, before);
    Thread.currentThread().setContextClassLoader(offers);
  }

  @AfterEach
  void restore() throws Exception {
    Thread.currentThread().setContextClassLoader(before);
    offers.close();
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
        .hasMessageStartingWith("no backend 'nccl' on the class path; found [gloo]. Add the jar");
  }
}
