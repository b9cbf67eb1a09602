package dev.tutti.aeron.driver;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZZ_Result;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/**
 * Races between a thread that goes to sleep at a bell and threads that have written a message for
 * it.
 */
public final class DoorbellRaces {
  private DoorbellRaces() {}

  /** The bell of each state, and a message that is written and read like Aeron's. */
  public static class Word {
    private static final int STATES = 1 << 14;
    private static final UnsafeBuffer ALL =
        new UnsafeBuffer(ByteBuffer.allocateDirect(STATES * CountersReader.COUNTER_LENGTH));
    private static final AtomicInteger NEXT = new AtomicInteger();
    private static final VarHandle MESSAGE;

    static {
      try {
        MESSAGE = MethodHandles.lookup().findVarHandle(Word.class, "message", int.class);
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    final Doorbell bell;
    private int message;

    Word() {
      int number = NEXT.getAndIncrement() & STATES - 1;
      ALL.putLongVolatile(CountersReader.counterOffset(number), 0);
      bell = new Doorbell(ALL, number, () -> false);
    }

    final boolean writeAndTake() {
      MESSAGE.setRelease(this, 1);
      return bell.tookArmed();
    }

    final boolean hasMessage() {
      return (int) MESSAGE.getVolatile(this) == 1;
    }
  }

  /** A thread goes to sleep while a message is written. */
  @JCStressTest
  @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "woken for nothing")
  @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "woken")
  @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "did not sleep")
  @Outcome(id = "false, false", expect = FORBIDDEN, desc = "sleeps and nobody wakes it")
  @State
  public static class ArmAgainstTake extends Word {
    @Actor
    public void writer(ZZ_Result result) {
      result.r1 = writeAndTake();
    }

    @Actor
    public void sleeper(ZZ_Result result) {
      bell.arm();
      result.r2 = hasMessage();
    }
  }

  /** Two threads have written to a sleeper: one of them wakes it, and the bell is free. */
  @JCStressTest
  @Outcome(id = "true, false, false", expect = ACCEPTABLE, desc = "the first wakes it")
  @Outcome(id = "false, true, false", expect = ACCEPTABLE, desc = "the second wakes it")
  @State
  public static class TakeAgainstTake extends Word {
    public TakeAgainstTake() {
      bell.arm();
    }

    @Actor
    public void first(ZZZ_Result result) {
      result.r1 = bell.tookArmed();
    }

    @Actor
    public void second(ZZZ_Result result) {
      result.r2 = bell.tookArmed();
    }

    @Arbiter
    public void after(ZZZ_Result result) {
      result.r3 = bell.isArmed();
    }
  }

  /** The sleeper wakes by itself and sleeps again while another thread rings the earlier bell. */
  @JCStressTest
  @Outcome(id = "true, true, false", expect = ACCEPTABLE, desc = "woken, also from the new sleep")
  @Outcome(id = "true, true, true", expect = ACCEPTABLE, desc = "woken, then armed again")
  @Outcome(id = "true, false, false", expect = ACCEPTABLE, desc = "armed again, then woken")
  @Outcome(
      id = "false, true, true",
      expect = ACCEPTABLE,
      desc = "found it disarmed; saw the message")
  @State
  public static class TakeAgainstArmAgain extends Word {
    public TakeAgainstArmAgain() {
      bell.arm();
    }

    @Actor
    public void writer(ZZZ_Result result) {
      result.r1 = writeAndTake();
    }

    @Actor
    public void sleeper(ZZZ_Result result) {
      bell.disarm();
      bell.arm();
      result.r2 = hasMessage();
    }

    @Arbiter
    public void after(ZZZ_Result result) {
      result.r3 = bell.isArmed();
    }
  }
}
