package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStoreOptions.Transport;
import dev.tutti.store.JobToken;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Uses a media driver that somebody else runs, with its own settings. */
@Timeout(60)
class ExternalDriverTest {
  @TempDir private Path directory;

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("127.0.0.1", 0)
        .withDirectory(directory)
        .withDriver(directory.resolve("external").toString())
        .withToken(JobToken.NONE);
  }

  @Test
  void serverAndClientsUseIt() {
    MediaDriver.Context context =
        new MediaDriver.Context()
            .aeronDirectoryName(options().driver())
            .threadingMode(ThreadingMode.SHARED)
            .termBufferSparseFile(true)
            .dirDeleteOnShutdown(true);
    try (MediaDriver driver = MediaDriver.launch(context)) {
      try (AeronStore store = new AeronStore(options().withServer(true));
          AeronStore far =
              new AeronStore(options().withPort(store.port()).withTransport(Transport.UDP))) {
        assertThat(store.driver()).isEqualTo(driver.aeronDirectoryName());
        assertThat(far.driver()).isEqualTo(driver.aeronDirectoryName());
        assertThat(store.isShared()).isTrue();
        assertThat(far.isShared()).isFalse();
        byte[] value = new byte[1 << 20];
        value[4711] = 1;
        far.set("key", value);
        assertThat(store.get("key")).isEqualTo(value);
        assertThat(far.get("key")).isEqualTo(value);
      }
      assertThat(directory.toFile().list()).containsExactly("external");
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void oneThatDoesNotRunIsNamed() {
    assertThatThrownBy(() -> new AeronStore(options().withServer(true)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("no media driver runs in " + options().driver())
        .hasMessageContaining("TUTTI_AERON_DRIVER");
    assertThat(directory).isEmptyDirectory();
  }
}
