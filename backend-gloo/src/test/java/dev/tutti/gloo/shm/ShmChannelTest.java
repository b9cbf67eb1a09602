package dev.tutti.gloo.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.gloo.transport.TestOperation;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Lets a rank wait for one that never comes. */
@Timeout(300)
class ShmChannelTest {
  private static final Duration WAIT = Duration.ofMillis(500);

  /** More iterations than a wait of half a second has if each of them sleeps. */
  private static final int MANY = 5000;

  /** A virtual thread always parks, and an interrupt ends parking. */
  @Test
  void anInterruptedRankSleepsAndStaysInterrupted() throws Exception {
    AtomicInteger turns = new AtomicInteger();
    ShmFuzzTest.Alone alone =
        new ShmFuzzTest.Alone() {
          @Override
          public Throwable failureOf(int peer) {
            turns.incrementAndGet();
            return super.failureOf(peer);
          }
        };
    ShmLayout layout = ShmLayout.within(2, 256 * 1024);
    try (ShmFile memory = ShmFile.ofOne(layout.bytes(), Time.SYSTEM)) {
      ShmChannel channel = new ShmChannel(memory, layout, alone, 0);
      FutureTask<Boolean> waiting =
          new FutureTask<>(
              () -> {
                Thread.currentThread().interrupt();
                assertThatThrownBy(() -> channel.agree(new TestOperation(WAIT)))
                    .isInstanceOf(TimeoutException.class);
                return Thread.currentThread().isInterrupted();
              });
      Thread.startVirtualThread(waiting);
      assertThat(waiting.get(60, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(turns.get()).isBetween(1, MANY);
  }

  /** The clock never jumps, so the rank does not believe that others need its core. */
  @Test
  void aRankThatMaySpinForLongStillHasADeadline() throws Exception {
    ShmLayout layout = ShmLayout.within(2, 256 * 1024);
    try (ShmFile memory = ShmFile.ofOne(layout.bytes(), Time.SYSTEM)) {
      AtomicLong now = new AtomicLong(System.nanoTime());
      long spin = Duration.ofMinutes(30).toNanos();
      Time ticking =
          new ForwardingTime(Time.SYSTEM) {
            @Override
            public long nanoTime() {
              return now.addAndGet(100_000);
            }
          };
      WaitStrategy spinning = new WaitStrategy(spin, 0, 1, 1, 0, new BusyCores(), ticking);
      ShmChannel channel = new ShmChannel(memory, layout, new ShmFuzzTest.Alone(), spinning);
      FutureTask<Void> waiting =
          new FutureTask<>(
              () -> {
                channel.agree(new TestOperation(WAIT));
                return null;
              });
      Thread.ofPlatform().daemon().start(waiting);
      assertThatThrownBy(() -> waiting.get(60, TimeUnit.SECONDS))
          .hasCauseInstanceOf(TimeoutException.class);
    }
  }
}
