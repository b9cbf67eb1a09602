package dev.tutti.cpu.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** Races of {@link UserCount}. */
public final class UserCountRaces {
  private UserCountRaces() {}

  /** Memory that is closed while in use is freed once, and not before the use ends. */
  @JCStressTest
  @Outcome(id = "0, 0, 1", expect = ACCEPTABLE, desc = "closed before the use")
  @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "used, and freed by either")
  @State
  public static class UseAgainstClose {
    private final UserCount users = new UserCount();
    private int byUser;
    private int byCloser;

    @Actor
    public void use(III_Result result) {
      if (users.enter()) {
        result.r1 = 1;
        result.r2 = byCloser;
        if (users.leave()) {
          byUser++;
        }
      }
    }

    @Actor
    public void close() {
      if (users.close() && users.leave()) {
        byCloser++;
      }
    }

    @Arbiter
    public void count(III_Result result) {
      result.r3 = byUser + byCloser;
    }
  }

  /**
   * Of two concurrent closes, one takes effect; until it frees the memory, everything is still
   * there.
   */
  @JCStressTest
  @Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "one closed, one freed")
  @State
  public static class CloseAgainstClose {
    private final UserCount users = new UserCount();
    private int early;
    private volatile int closed;
    private volatile int freed;

    private void closeOnce() {
      if (users.close()) {
        closed++;
        early += freed;
        if (users.leave()) {
          freed++;
        }
      }
    }

    @Actor
    public void one() {
      closeOnce();
    }

    @Actor
    public void other() {
      closeOnce();
    }

    @Arbiter
    public void count(III_Result result) {
      result.r1 = early;
      result.r2 = closed;
      result.r3 = freed;
    }
  }
}
