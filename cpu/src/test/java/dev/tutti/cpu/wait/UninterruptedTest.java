package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class UninterruptedTest {
  @Test
  void anInterruptDoesNotEndAWaitAndIsKept() {
    CountDownLatch done = new CountDownLatch(1);
    Thread.currentThread().interrupt();
    boolean ended =
        Uninterrupted.await(
            () -> {
              boolean isDone = done.getCount() == 0;
              done.countDown();
              return done.await(60, TimeUnit.SECONDS) && isDone;
            });
    assertThat(ended).as("the wait was continued").isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }
}
