package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.cpu.wait.Futex;
import dev.tutti.shared.Until;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Brings sessions of this process to the point where a waiting thread sleeps in the bell. */
public final class InBell {
  private static final String KEY = "in-bell";
  private static final long LIMIT = TimeUnit.SECONDS.toNanos(120);

  private InBell() {}

  /** Links the futex; skips the test if there is none. */
  public static void link() {
    assumeThat(Futex.isAvailable()).as("this system has a futex").isTrue();
    Futex.link();
    Until.holds(Futex::isLinked);
  }

  /** Returns the store once server and client have agreed to wake each other in their bells. */
  static AeronStore ready(AeronStore store) throws InterruptedException {
    Thread waits = Thread.ofPlatform().daemon().start(() -> store.await(List.of(KEY)));
    Until.holds(
        () -> {
          // Each side shows that it can wake the other when it goes to sleep.
          store.set(KEY + "/again", new byte[0]);
          return store.isInBell();
        });
    store.set(KEY, new byte[0]);
    assertThat(waits.join(Duration.ofNanos(LIMIT))).isTrue();
    store.deleteKey(KEY);
    store.deleteKey(KEY + "/again");
    return store;
  }
}
