package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.Settings;
import dev.tutti.StoreException;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.testkit.TestAuthority;
import dev.tutti.testkit.TestAuthority.Issued;
import dev.tutti.tls.TlsSettings;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Refuses the certificates of clients over simulated networks. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedTlsTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 20);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  @TempDir static Path folder;
  private static SSLContext one;
  private static SSLContext stranger;

  @BeforeAll
  static void issue() throws Exception {
    TestAuthority authority = new TestAuthority(folder, "one", TestAuthority.Kind.ED25519);
    one = context(authority.certificate(), authority.issue("member"));
    Issued other = new TestAuthority(folder, "other", TestAuthority.Kind.ED25519).issue("stranger");
    stranger = context(authority.certificate(), other);
  }

  private static SSLContext context(Path trusted, Issued own) {
    return Objects.requireNonNull(
        TlsSettings.load(Settings.ofEnvironment(own.settings("TUTTI_TLS", trusted))));
  }

  private static TcpStoreOptions options(int port, SSLContext tls) {
    SimulatedHost host = SimulatedHost.current();
    return TcpStoreOptions.of("127.0.0.1", port)
        .withTimeout(Duration.ofSeconds(60))
        .withToken(JobToken.NONE)
        .withTls(tls)
        .withTime(host.time())
        .withChannels(host.channels());
  }

  @Test
  void whoIsNotTrustedIsToldSo() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      SimulatedProgram.Outcome outcome = SimulatedProgram.run(seed, _ -> refuse());
      assertThat(outcome.failure()).as("seed %d", seed).isNull();
      assertThat(SimulatedProgram.run(seed, _ -> refuse())).as("seed %d", seed).isEqualTo(outcome);
    }
  }

  private static void refuse() {
    try (TcpStore server = new TcpStore(options(0, one).withServer(true))) {
      Throwable refused = catchThrowable(() -> new TcpStore(options(server.port(), stranger)));
      assertThat(refused)
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("it refused this process: ");
    }
  }
}
