package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class CollectiveQueueTest {
  private final CollectiveQueue queue = new CollectiveQueue("queue-test", op -> {}, Time.SYSTEM);
  private final long deadline = Time.SYSTEM.deadline(Duration.ofDays(1));

  private static void awaitWaiting(Thread thread) {
    while (thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
  }

  @Test
  void aCallerThatIssuesANumberEndsAWaitForIt() throws InterruptedException {
    Thread waiter = Thread.ofPlatform().start(() -> queue.awaitIssued(2, () -> false, deadline));
    awaitWaiting(waiter);
    assertThat(queue.tryEnter()).isEqualTo(1);
    queue.exit();
    awaitWaiting(waiter);
    assertThat(queue.tryEnter()).isEqualTo(2);
    queue.exit();
    waiter.join();
    assertThat(queue.sequence()).isEqualTo(2);
  }

  @Test
  void aCallThatIsRefusedEndsAWaitForItsNumber() throws InterruptedException {
    AtomicBoolean isRefused = new AtomicBoolean();
    Thread waiter = Thread.ofPlatform().start(() -> queue.awaitIssued(1, isRefused::get, deadline));
    awaitWaiting(waiter);
    isRefused.set(true);
    queue.refused();
    waiter.join();
    assertThat(queue.sequence()).isZero();
  }

  @Test
  void theDeadlineEndsAWait() {
    queue.awaitIssued(1, () -> false, Time.SYSTEM.nanoTime());
    assertThat(queue.tryEnter()).isEqualTo(1);
  }
}
