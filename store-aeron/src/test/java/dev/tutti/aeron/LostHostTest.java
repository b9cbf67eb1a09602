package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Cuts the link between two network namespaces, one of which contains a client. */
@Tag("full")
class LostHostTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @TempDir private Path directory;

  @Test
  void aLostHostIsNoticedOnBothSidesWithinTheLease() throws Exception {
    try (OtherHost elsewhere = new OtherHost(0);
        AeronStoreServer server =
            new AeronStoreServer(
                AeronStoreOptions.of("0.0.0.0", 0)
                    .withDirectory(directory)
                    .withToken(JobToken.NONE));
        AeronStore store =
            new AeronStore(
                AeronStoreOptions.of("127.0.0.1", server.port())
                    .withDirectory(directory)
                    .withTimeout(LONG)
                    .withToken(JobToken.NONE));
        StoreChild client =
            StoreChild.start(
                List.of("ip", "netns", "exec", elsewhere.name),
                "128m",
                "will",
                server.port(),
                "TUTTI_AERON_DIR=" + directory,
                "TUTTI_AERON_TRANSPORT=udp",
                "HOST=" + elsewhere.here)) {
      assertThat(client.line()).isEqualTo("READY false");
      assertThat(store.check(List.of("will/1"))).isFalse();
      long start = System.nanoTime();
      elsewhere.cut();
      assertThat(store.get("will/1")).asString(StandardCharsets.UTF_8).isEqualTo("gone");
      assertThat(client.line()).startsWith("FAILED").contains("is gone");
      // The lease, which the kernel counts in seconds, plus the time that a busy machine needs to
      // report it; a call would wait twice as long.
      assertThat(System.nanoTime() - start).isLessThan(LONG.toNanos() / 2);
    }
  }
}
