package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions.Transport;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests clients over UDP in a process that starts others: each has a copy of all sockets until it
 * runs its program, and so keeps ports in use that this process has just released.
 */
@Timeout(300)
class UdpBesideProcessesTest {
  /** Of five servers, some failed in three of four runs before ports were tried again. */
  private static final int SERVERS = 10;

  @Test
  void clientsAreServed() throws Exception {
    AtomicBoolean ends = new AtomicBoolean();
    try (var threads = Executors.newSingleThreadExecutor()) {
      Future<Integer> started = threads.submit(() -> startProcesses(ends));
      try {
        for (int i = 0; i < SERVERS; i++) {
          try (AeronStore store =
              new AeronStore(
                  AeronStoreOptions.of("127.0.0.1", 0)
                      .withServer(true)
                      .withTransport(Transport.UDP))) {
            assertThat(store.add("count", 1)).isEqualTo(1);
          }
        }
      } finally {
        ends.set(true);
      }
      assertThat(started.get(60, TimeUnit.SECONDS)).isPositive();
    }
  }

  private static int startProcesses(AtomicBoolean ends) throws Exception {
    int count = 0;
    while (!ends.get()) {
      assertThat(new ProcessBuilder("true").start().waitFor()).isZero();
      count++;
    }
    return count;
  }
}
