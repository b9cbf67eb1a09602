package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests bounded calls, and the threads that they share. */
@Timeout(300)
@Isolated("waits for the end of threads that serve all classes")
class BoundedCallsTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @Test
  void resultsAndExceptionsComeThrough() throws Exception {
    assertThat(BoundedCalls.<Integer>call(Time.SYSTEM, "seven", LONG, () -> 7)).isEqualTo(7);
    assertThatThrownBy(
            () ->
                BoundedCalls.call(
                    Time.SYSTEM,
                    "torn",
                    LONG,
                    () -> {
                      throw new IOException("torn");
                    }))
        .isInstanceOf(IOException.class)
        .hasMessage("torn");
  }

  @Test
  void callsThatHangKeepNoOtherWaiting() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    Set<Thread> stuck = ConcurrentHashMap.newKeySet();
    try {
      for (int i = 0; i < 20; i++) {
        assertThatThrownBy(
                () ->
                    BoundedCalls.call(
                        Time.SYSTEM,
                        "stuck",
                        Duration.ofMillis(5),
                        () -> {
                          stuck.add(Thread.currentThread());
                          never.await();
                          return 0;
                        }))
            .isInstanceOf(TimeoutException.class);
      }
      assertThat(BoundedCalls.<Boolean>call(Time.SYSTEM, "free", LONG, () -> true)).isTrue();
      LocalWorld.until("the calls that hang", () -> stuck.size() == 20);
      assertThat(stuck).allMatch(thread -> thread.getName().equals("stuck") && thread.isDaemon());
    } finally {
      never.countDown();
    }
  }

  @Test
  void threadsServeManyCallsAndEnd() throws Exception {
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 200; i++) {
      threads.add(
          BoundedCalls.<Thread>call(Time.SYSTEM, "one of many", LONG, Thread::currentThread));
    }
    assertThat(threads).hasSizeLessThan(200);
    LocalWorld.until("the end of idle threads", () -> threads.stream().noneMatch(Thread::isAlive));
  }

  @Test
  void aThreadIsItsCallersDuringTheCallOnly() throws Exception {
    List<Object> seen = Collections.synchronizedList(new ArrayList<>());
    ThreadGroup group = new ThreadGroup("of the caller");
    InheritableThreadLocal<String> local = new InheritableThreadLocal<>();
    try (URLClassLoader loader = new URLClassLoader(new URL[0])) {
      Thread caller =
          Thread.ofPlatform()
              .group(group)
              .daemon()
              .unstarted(
                  () -> {
                    Thread.currentThread().setContextClassLoader(loader);
                    local.set("of the caller");
                    try {
                      BoundedCalls.call(
                          Time.SYSTEM,
                          "called",
                          LONG,
                          () -> {
                            Thread self = Thread.currentThread();
                            seen.add(self);
                            seen.add(self.getName());
                            seen.add(self.getContextClassLoader());
                            seen.add(self.getThreadGroup().equals(group));
                            seen.add(local.get() == null);
                            return 0;
                          });
                    } catch (Exception e) {
                      seen.add(e);
                    }
                  });
      caller.start();
      assertThat(caller.join(LONG)).isTrue();
      assertThat(seen.subList(1, seen.size())).containsExactly("called", loader, false, true);
      Thread thread = (Thread) seen.get(0);
      LocalWorld.until(
          "the end of the call",
          () -> thread.getName().equals(BoundedCalls.IDLE) || !thread.isAlive());
      LocalWorld.until("the caller's class loader to go", () -> hasForgotten(thread, loader));
    }
  }

  private static boolean hasForgotten(Thread thread, ClassLoader loader) {
    return !loader.equals(thread.getContextClassLoader());
  }

  @Test
  void anInterruptWaitsForTheCall() throws Exception {
    Thread.currentThread().interrupt();
    assertThat(
            BoundedCalls.<Boolean>call(
                Time.SYSTEM, "calm", LONG, () -> !Thread.currentThread().isInterrupted()))
        .isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }
}
