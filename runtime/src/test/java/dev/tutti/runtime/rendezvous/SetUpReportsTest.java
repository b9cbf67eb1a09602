package dev.tutti.runtime.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.Time;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests the reports about a rank that does not meet the others; the tests set the time. */
class SetUpReportsTest {
  private static final long START = Long.MAX_VALUE - TimeUnit.SECONDS.toNanos(7);

  private final List<String> lines = new ArrayList<>();
  private final SetUpReports reports =
      new SetUpReports(
          Watchdog.of(Time.SYSTEM), START, () -> "rank 1/2 waits", Runnable::run, lines::add);

  /** Looks after some time; returns the number of milliseconds until the next look. */
  private long look(long millis) {
    long now = START + TimeUnit.MILLISECONDS.toNanos(millis);
    return TimeUnit.NANOSECONDS.toMillis(reports.checkDeadlines(now) - now);
  }

  @Test
  void aLineComesAfterFiveSecondsAndWheneverTheWaitHasDoubled() {
    assertThat(look(0)).isEqualTo(1000);
    assertThat(look(4900)).isEqualTo(100);
    assertThat(lines).isEmpty();
    look(5000);
    assertThat(lines).containsExactly("for 5 s, rank 1/2 waits");
    reports.waitFor(() -> "rank 1/2 still waits");
    for (int millis = 5000; millis <= 81_000; millis += 500) {
      look(millis);
    }
    assertThat(lines)
        .containsExactly(
            "for 5 s, rank 1/2 waits",
            "for 10 s, rank 1/2 still waits",
            "for 20 s, rank 1/2 still waits",
            "for 40 s, rank 1/2 still waits",
            "for 80 s, rank 1/2 still waits");
  }

  @Test
  void aRankThatWasStoppedReportsOnce() {
    look(200_000);
    look(201_000);
    assertThat(lines).containsExactly("for 200 s, rank 1/2 waits");
    look(320_000);
    assertThat(lines).hasSize(2);
  }

  @Test
  void aRankSaysWhyItDoesNotReachTheStore() throws Exception {
    // A port that is bound but not listened to refuses connections.
    try (SocketChannel bound = SocketChannel.open()) {
      bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      int port = ((InetSocketAddress) bound.getLocalAddress()).getPort();
      String url = "tcp://127.0.0.1:" + port;
      Settings settings = Settings.ofEnvironment(Map.of());
      Rendezvous rendezvous =
          new Rendezvous(
              GroupOptions.DEFAULT.withInitMethod(url + "?rank=1&world_size=2"),
              settings,
              Duration.ofMillis(300));
      assertThat(rendezvous.standing())
          .isEqualTo("the store has not been reached: no answer so far");
      assertThatThrownBy(rendezvous::open).isInstanceOf(RendezvousException.class);
      assertThat(rendezvous.standing())
          .startsWith("rank 1/2: the store at " + url)
          .endsWith("has not been reached: java.net.ConnectException: Connection refused");
    }
  }
}
