package dev.tutti.cpu.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class UserCountTest {
  private final UserCount users = new UserCount();

  @Test
  void whoClosesWhatNobodyUsesFreesIt() {
    assertThat(users.isClosed()).isFalse();
    assertThat(users.close()).isTrue();
    assertThat(users.isClosed()).isTrue();
    assertThat(users.leave()).isTrue();
  }

  @Test
  void usesDoNotFreeWhatIsOpen() {
    assertThat(users.enter()).isTrue();
    assertThat(users.leave()).isFalse();
    assertThat(users.enter()).isTrue();
    assertThat(users.isClosed()).isFalse();
  }

  @Test
  void theLastUserFreesWhatWasClosedMeanwhile() {
    assertThat(users.enter()).isTrue();
    assertThat(users.enter()).isTrue();
    assertThat(users.close()).isTrue();
    assertThat(users.leave()).isFalse();
    assertThat(users.leave()).isFalse();
    assertThat(users.leave()).isTrue();
  }

  @Test
  void whatIsClosedIsNeitherUsedNorClosedAgain() {
    assertThat(users.enter()).isTrue();
    assertThat(users.close()).isTrue();
    assertThat(users.enter()).isFalse();
    assertThat(users.close()).isFalse();
    assertThat(users.leave()).isFalse();
    assertThat(users.leave()).isTrue();
    assertThat(users.enter()).isFalse();
  }

  /** While inside, users check whether the memory is freed; two threads close at once. */
  @Test
  void ofManyThreadsOneFreesAndNobodyIsInside() throws Exception {
    for (int round = 0; round < 500; round++) {
      UserCount count = new UserCount();
      AtomicInteger freed = new AtomicInteger();
      CyclicBarrier together = new CyclicBarrier(4);
      List<FutureTask<Integer>> tasks = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        boolean closes = thread < 2;
        tasks.add(new FutureTask<>(() -> useThenClose(count, closes, freed, together)));
      }
      tasks.forEach(task -> Thread.ofPlatform().daemon().start(task));
      int early = 0;
      for (FutureTask<Integer> task : tasks) {
        early += task.get(60, TimeUnit.SECONDS);
      }
      assertThat(early).isZero();
      assertThat(freed).hasValue(1);
    }
  }

  /** Returns how often the thread found itself inside freed memory. */
  private static int useThenClose(
      UserCount count, boolean closes, AtomicInteger freed, CyclicBarrier together)
      throws Exception {
    together.await(60, TimeUnit.SECONDS);
    int early = 0;
    for (int i = 0; i < 50 && count.enter(); i++) {
      early += freed.get();
      if (count.leave()) {
        freed.incrementAndGet();
      }
    }
    if (closes && count.close()) {
      early += freed.get();
      if (count.leave()) {
        freed.incrementAndGet();
      }
    }
    return early;
  }
}
