package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions.Transport;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.store.JobToken;
import io.aeron.Aeron;
import io.aeron.driver.status.SystemCounterDescriptor;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.status.CountersReader;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Uses UDP to reach a server in another process, whose media driver loses packets in both
 * directions.
 */
@Timeout(300)
@Tag("full")
class LossyNetworkTest {
  private static final String ENDPOINTS = "io.aeron.driver.ext.Debug";
  private static final double LOSS = 0.03;
  private static final int CALLS = 60;
  private static final int THREADS = 4;
  private static final Duration LIMIT = Duration.ofMinutes(4);

  @TempDir private Path directory;

  private static String flags() {
    List<String> flags = new ArrayList<>();
    for (String side : List.of("Receive", "Send")) {
      String endpoint = side + "ChannelEndpoint";
      flags.add("-Daeron." + endpoint + ".supplier=" + ENDPOINTS + endpoint + "Supplier");
      for (String kind : List.of("data", "control")) {
        String name = "-Daeron.debug." + side.toLowerCase(Locale.ROOT) + "." + kind;
        flags.add(name + ".loss.rate=" + LOSS);
        flags.add(name + ".loss.seed=20261122");
      }
    }
    return String.join(" ", flags);
  }

  @Test
  void everyCallIsRightThoughPacketsAreLost() throws Exception {
    try (StoreChild server =
        StoreChild.start(
            "serve", 0, "TUTTI_AERON_DIR=" + directory, "JAVA_TOOL_OPTIONS=" + flags())) {
      String ready = server.line();
      assertThat(ready).startsWith("READY ");
      AeronStoreOptions options =
          AeronStoreOptions.of("127.0.0.1", Integer.parseInt(ready.substring(6)))
              .withDirectory(directory)
              .withToken(JobToken.NONE)
              .withTimeout(LIMIT)
              .withTransport(Transport.UDP);
      try (AeronStore store = new AeronStore(options)) {
        List<FutureTask<Void>> threads = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
          int seed = thread;
          threads.add(
              new FutureTask<>(
                  () -> {
                    call(store, seed);
                    return null;
                  }));
          Thread.ofPlatform().daemon().start(threads.get(thread));
        }
        for (FutureTask<Void> thread : threads) {
          thread.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
        assertThat(store.add("count", 0)).isEqualTo((long) THREADS * CALLS);
        assertLosses(store.driver());
      }
    }
  }

  /** Uses the store; every reply must be the right one. */
  private static void call(AeronStore store, int thread) {
    Random random = new Random(thread);
    for (int i = 0; i < CALLS; i++) {
      byte[] value = new byte[i % 10 == 0 ? 100_000 : i];
      random.nextBytes(value);
      String key = thread + "/" + i;
      store.set(key, value);
      assertThat(store.get(key)).isEqualTo(value);
      store.add("count", 1);
      store.queuePush("queue" + thread, value);
      assertThat(store.queuePop("queue" + thread, LIMIT)).isEqualTo(value);
    }
    store.barrier("all", THREADS, LIMIT);
  }

  /**
   * Checks that requests and replies were lost: this side resent some, and requested some again.
   */
  private static void assertLosses(String driver) {
    try (Aeron aeron = EmbeddedDriver.connect(driver, Timing.of(Timing.DEFAULT_LEASE))) {
      CountersReader counters = aeron.countersReader();
      assertThat(counters.getCounterValue(SystemCounterDescriptor.RETRANSMITS_SENT.id()))
          .isPositive();
      assertThat(counters.getCounterValue(SystemCounterDescriptor.NAK_MESSAGES_SENT.id()))
          .isPositive();
    }
  }
}
