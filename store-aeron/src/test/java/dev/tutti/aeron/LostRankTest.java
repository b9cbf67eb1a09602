package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests what others are notified of when a process ends, because it was killed or because it
 * closed.
 */
class LostRankTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int SIZE = 3;

  @TempDir private Path directory;

  private final List<StoreChild> ranks = new ArrayList<>();

  @AfterEach
  void endRanks() throws IOException {
    for (StoreChild rank : ranks) {
      rank.close();
    }
  }

  private AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withTimeout(LONG);
  }

  @Test
  void aKilledProcessLeavesItsWills() throws Exception {
    try (AeronStore store = new AeronStore(options(0).withServer(true));
        StoreChild client =
            StoreChild.start("will", store.port(), "TUTTI_AERON_DIR=" + directory)) {
      assertThat(client.line()).isEqualTo("READY true");
      store.set("will/1", "there");
      assertThat(store.check(List.of("will/2"))).isFalse();
      client.kill();
      assertThat(store.get("will/2")).asString(StandardCharsets.UTF_8).isEqualTo("gone");
      assertThat(store.get("will/3")).asString(StandardCharsets.UTF_8).isEqualTo("both");
      assertThat(store.keyCount()).isEqualTo(4);
    }
  }

  @Test
  void whoClosesLeavesNoWill() {
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        AeronStore store = new AeronStore(options(server.port()))) {
      AeronStore other = new AeronStore(options(server.port()).withLease(Duration.ofSeconds(6)));
      AeronStore handle = other.duplicate();
      assertThat(handle.leaveWill("will/", new byte[1])).isTrue();
      handle.close();
      other.close();
      AeronStore last = new AeronStore(options(server.port()).withLease(Duration.ofSeconds(6)));
      last.leaveWill("last/", new byte[1]);
      last.close();
      // The server detects the end of a client before it serves a later one.
      try (AeronStore later =
          new AeronStore(options(server.port()).withLease(Duration.ofSeconds(7)))) {
        assertThat(later.keyCount()).isZero();
      }
      assertThat(store.keyCount()).isZero();
    }
  }

  /** Starts the ranks of a job, each in its own process, and waits until they have met. */
  private void start(int size, boolean isServed, int port) throws Exception {
    for (int rank = 0; rank < size; rank++) {
      ranks.add(
          StoreChild.start(
              "rank",
              0,
              "TUTTI_AERON_DIR=" + directory,
              "TUTTI_STORE=aeron",
              "TUTTI_BACKEND=fake",
              // How long the rank that serves waits for the others to leave.
              "TUTTI_CLOSE_TIMEOUT=100s",
              "TORCHELASTIC_USE_AGENT_STORE=" + (isServed ? "True" : "False"),
              "MASTER_ADDR=127.0.0.1",
              "MASTER_PORT=" + port,
              "WORLD_SIZE=" + size,
              "RANK=" + rank));
    }
    for (int rank = 0; rank < size; rank++) {
      assertThat(ranks.get(rank).line()).isEqualTo("READY " + rank);
    }
  }

  /** Kills a rank, and asserts what the others then report. */
  private void assertOthersLearnOfTheEndOf(int killed, String... words) throws Exception {
    long start = System.nanoTime();
    ranks.get(killed).kill();
    for (int rank = 0; rank < SIZE; rank++) {
      if (rank != killed) {
        assertThat(ranks.get(rank).line()).startsWith("ABORTED ").contains(words);
      }
    }
    assertThat(System.nanoTime() - start).isLessThan(LONG.toNanos() / 2);
  }

  @Test
  void allRanksLearnOfAKilledOneThoughTheirBackendDoesNot() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      start(SIZE, true, server.port());
      assertOthersLearnOfTheEndOf(
          1, "rank 1 is gone, as detected by the store: its process ended, or its host is lost");
    }
  }

  @Test
  void allRanksFindTheLossOfTheOneThatServes() throws Exception {
    start(SIZE, false, FreePorts.one());
    assertOthersLearnOfTheEndOf(
        0,
        "rank 0 is gone, as detected by this rank: it served the store: store server at",
        "its process ended");
  }

  @Test
  void theRankThatServesFailsNobodyWhenAllClose() throws Exception {
    start(2, false, FreePorts.one());
    for (StoreChild rank : ranks) {
      rank.end();
    }
    for (StoreChild rank : ranks) {
      assertThat(rank.line()).isEqualTo("CLOSED");
    }
  }

  @Test
  void aRankThatClosesFailsNobody() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      start(2, true, server.port());
      for (StoreChild rank : ranks) {
        rank.end();
        assertThat(rank.line()).isEqualTo("CLOSED");
      }
    }
  }
}
