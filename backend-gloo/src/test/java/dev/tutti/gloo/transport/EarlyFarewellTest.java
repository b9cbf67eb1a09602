package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.TestContexts;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests a rank that leaves the group before its peer has finished its setup. */
class EarlyFarewellTest {
  private final HashStore store = new HashStore();
  private final RingRanks.Rings memory = new RingRanks.Rings();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  private Transport transport(int rank) throws Exception {
    BackendContext context =
        TestContexts.of(
            rank, 2, store, Duration.ofMinutes(1), (cause, blamed) -> failures.add(cause));
    return new TransportRendezvous(context, InetAddress.ofLiteral("127.0.0.1"), false, false)
        .connect(Duration.ZERO);
  }

  @Test
  void whoLeavesBeforeItsPeerSharesMemoryIsNotLost() throws Exception {
    FutureTask<Transport> other = new FutureTask<>(() -> transport(1));
    Thread.ofPlatform().daemon().start(other);
    try (Transport slow = transport(0)) {
      Transport quick = other.get(60, TimeUnit.SECONDS);
      // Nothing reads the farewell before this point.
      slow.progress.lock.lock();
      try {
        quick.share(
            new int[] {0, 1}, memory, store, System.nanoTime() + Duration.ofMinutes(1).toNanos());
        quick.close();
        slow.pairs.share(new int[] {0, 1}, memory);
        assertThat(slow.transportFailure.cause()).isNull();
        assertThat(slow.pairs.failureOfAll()).hasMessageContaining("closed its group");
      } finally {
        slow.progress.lock.unlock();
      }
    }
    assertThat(failures).isEmpty();
  }
}
