package dev.tutti.gloo.transport;

import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which of the following threads is woken. */
@Timeout(60)
class FollowersTest {
  private static final Goal OPEN = () -> false;

  private final Followers followers = new Followers();

  /** A thread that never starts cannot be woken, so waking it has no effect. */
  private Thread addOther(Goal goal) {
    Thread other = Thread.ofPlatform().unstarted(() -> {});
    followers.add(other, goal);
    return other;
  }

  private static void assertWoken() {
    // It ends at once, since a thread that is woken before keeps that.
    LockSupport.park();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3, 10})
  void theNextIsWokenWhenThoseBeforeLeft(int before) {
    Thread[] others = new Thread[before];
    for (int i = 0; i < before; i++) {
      others[i] = addOther(OPEN);
    }
    followers.add(Thread.currentThread(), OPEN);
    addOther(OPEN);
    for (Thread other : others) {
      followers.wakeFirst();
      followers.remove(other);
    }
    followers.wakeFirst();
    assertWoken();
  }

  @Test
  void thoseWhoseGoalsAreReachedAreWoken() {
    addOther(OPEN);
    followers.add(Thread.currentThread(), () -> true);
    followers.wakeReached();
    assertWoken();
  }

  @Test
  void whoLeftIsNotAskedForItsGoal() {
    Thread gone =
        addOther(
            () -> {
              throw new AssertionError("it left");
            });
    followers.remove(gone);
    followers.wakeReached();
    followers.wakeFirst();
    followers.wakeAll();
  }
}
