package org.example.central;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.io.DataOutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

class MeetingTest {
  private static final Duration LONG = Duration.ofMinutes(2);

  private final HashStore store = new HashStore();

  @Test
  void strangersAreTurnedAway() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Future<Map<Integer, Link>> first = threads.submit(rank(0, 2, LONG));
      String[] where = new String(store.get("central/0"), StandardCharsets.UTF_8).split(" ", -1);
      try (Socket otherGroup = new Socket(where[0], Integer.parseInt(where[1]))) {
        DataOutputStream greeting = new DataOutputStream(otherGroup.getOutputStream());
        greeting.writeUTF("another group");
        greeting.writeInt(1);
        assertThat(otherGroup.getInputStream().read()).as("end of the connection").isEqualTo(-1);
      }
      try (Socket breaksOff = new Socket(where[0], Integer.parseInt(where[1]))) {
        breaksOff.getOutputStream().write(0);
      }
      Future<Map<Integer, Link>> second = threads.submit(rank(1, 2, LONG));
      Map<Integer, Link> links = first.get(LONG.toSeconds(), TimeUnit.SECONDS);
      assertThat(links).containsOnlyKeys(1);
      assertThat(second.get(LONG.toSeconds(), TimeUnit.SECONDS)).containsOnlyKeys(0);
      links.get(1).close();
      second.get().get(0).close();
    }
  }

  @Test
  void ranksThatDoNotComeAreNamed() {
    assertThatThrownBy(rank(0, 4, Duration.ofMillis(200))::call)
        .isInstanceOf(TimeoutException.class)
        .hasMessage("rank 0 got no connection from ranks [1, 2, 3] in time");
  }

  private Callable<Map<Integer, Link>> rank(int rank, int size, Duration timeout) {
    BackendContext context =
        BackendContext.builder("0", rank, size, store, timeout)
            .settings(Settings.ofEnvironment(Map.of()))
            .build();
    Mailbox mailbox = new Mailbox(rank);
    return () -> new Meeting(context, InetAddress.getLoopbackAddress()).connect(mailbox);
  }
}
