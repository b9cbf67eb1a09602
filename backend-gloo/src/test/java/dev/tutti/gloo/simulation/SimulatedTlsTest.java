package dev.tutti.gloo.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.store.HashStore;
import dev.tutti.testkit.TestAuthority;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Lets two ranks on simulated hosts encrypt of which at least one does not trust the other. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedTlsTest {
  private static final String TLS = "TUTTI_GLOO_TLS";

  @TempDir static Path folder;
  private static TestAuthority one;
  private static TestAuthority other;
  private static TestAuthority.Issued ofOne;
  private static TestAuthority.Issued ofOther;

  @BeforeAll
  static void issue() throws Exception {
    one = new TestAuthority(folder, "one", TestAuthority.Kind.ED25519);
    other = new TestAuthority(folder, "other", TestAuthority.Kind.ED25519);
    ofOne = one.issue("rank of one");
    ofOther = other.issue("rank of other");
  }

  /** Returns what each of two ranks throws that must not connect. */
  private static List<Throwable> failures(List<Map<String, String>> settings) throws Exception {
    SimulatedHost first = SimulatedHost.current();
    HashStore store = new HashStore(Duration.ofMinutes(1), first.time());
    List<FutureTask<Throwable>> ranks = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      SimulatedHost host = rank == 0 ? first : first.newHost("rank 1");
      Map<String, String> own = new HashMap<>(settings.get(rank));
      own.put(GlooProvider.SPIN.name(), "0");
      GroupOptions options =
          GroupOptions.DEFAULT
              .withStore(store)
              .withRank(rank)
              .withSize(2)
              .withTime(host.time())
              .withProvider(new GlooProvider(host.channels(), host.address()))
              .withSettings(Settings.ofEnvironment(own))
              .withTimeout(Duration.ofMinutes(1));
      FutureTask<Throwable> task =
          new FutureTask<>(() -> catchThrowable(() -> ProcessGroup.init(options)));
      ranks.add(task);
      Thread _ = host.time().start("rank " + rank, task);
    }
    List<Throwable> failures = new ArrayList<>();
    for (FutureTask<Throwable> rank : ranks) {
      failures.add(rank.get());
    }
    return failures;
  }

  @Simulated
  void ranksOfDifferentAuthoritiesAreNamed() throws Exception {
    // Either side may report first; the rank that refused keeps its own reason as a cause.
    assertThat(
            failures(
                List.of(
                    ofOne.settings(TLS, one.certificate()),
                    ofOther.settings(TLS, other.certificate()))))
        .allSatisfy(
            e -> assertThat(e).hasMessageContaining("GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE"))
        .anySatisfy(
            e -> assertThat(e).hasStackTraceContaining("unable to find valid certification path"))
        .anySatisfy(e -> assertThat(e).hasStackTraceContaining("cannot be trusted"));
  }

  @Simulated
  void rank0IsNamedThatRefused() throws Exception {
    assertRefused(0);
  }

  @Simulated
  void rank1IsNamedThatRefused() throws Exception {
    assertRefused(1);
  }

  /** Rank {@code wrong} trusts another authority than that of both certificates. */
  private static void assertRefused(int wrong) throws Exception {
    int right = 1 - wrong;
    List<Map<String, String>> settings = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      settings.add(ofOne.settings(TLS, (rank == wrong ? other : one).certificate()));
    }
    assertThat(failures(settings))
        .allSatisfy(
            e ->
                assertThat(e)
                    .hasMessageContaining("rank %d refused rank %d: ".formatted(wrong, right))
                    .hasMessageContaining(
                        "check GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT of rank %d and".formatted(right)
                            + " GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE of rank "
                            + wrong));
  }

  @Simulated
  void aRankWithoutTlsIsNamed() throws Exception {
    assertThat(failures(List.of(ofOne.settings(TLS, one.certificate()), Map.of())))
        .anySatisfy(
            e ->
                assertThat(e)
                    .hasMessageContaining(
                        "TUTTI_GLOO_TLS is set for rank 0, but not for rank 1; it must be the same"
                            + " for all ranks"));
  }
}
