package dev.tutti.cli.run;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/**
 * A rank of {@link KillRoundsTest} that repeats one kind of call until it fails. It prints {@code
 * READY} after the first call, {@code ON} after each call, and at the end either {@code CLOSED} or
 * {@code FAILED failedRank began ended message}, with the times of the failing call in milliseconds
 * of {@link System#currentTimeMillis()}. A call that takes long prints {@code LONG began stack}.
 */
final class KillRoundsRank {
  private static final int ELEMENTS = 50_000;

  /** The phase in which the ranks are. */
  enum Phase {
    INIT,
    CLOSE,
    SPLIT,
    SUBGROUP,
    MESSAGES,
    COLLECTIVES
  }

  private static final long LONG_MILLIS = 2_500;

  private static volatile long began = System.currentTimeMillis();

  private KillRoundsRank() {}

  public static void main(String[] arguments) {
    Phase phase = Phase.valueOf(arguments[0]);
    Duration deadline = Duration.ofMillis(Long.parseLong(arguments[1]));
    Thread self = Thread.currentThread();
    Thread.ofPlatform().daemon().start(() -> tellWhereLongCallsAre(self));
    try {
      // Processes may take long to start; after that the deadline bounds everything, even calls to
      // the store.
      ProcessGroup.init().close();
      while (phase == Phase.INIT) {
        tell();
        began = System.currentTimeMillis();
        ProcessGroup.init(GroupOptions.DEFAULT.withTimeout(deadline)).close();
      }
      ProcessGroup group = ProcessGroup.init(GroupOptions.DEFAULT.withTimeout(deadline));
      if (phase == Phase.CLOSE) {
        group.barrier();
        tell();
      } else {
        repeat(group, phase);
      }
      began = System.currentTimeMillis();
      group.close();
      System.out.println("CLOSED " + began + " " + System.currentTimeMillis());
    } catch (TuttiException e) {
      failed(e);
    }
  }

  /** Prints, once for each call that takes long, where the call is. */
  private static void tellWhereLongCallsAre(Thread caller) {
    long told = began;
    while (true) {
      LockSupport.parkNanos(Duration.ofMillis(100).toNanos());
      long now = began;
      if (now != told && System.currentTimeMillis() - now > LONG_MILLIS) {
        told = now;
        System.out.println("LONG " + now + " " + List.of(caller.getStackTrace()));
      }
    }
  }

  private static void repeat(ProcessGroup group, Phase phase) {
    try {
      while (true) {
        began = System.currentTimeMillis();
        step(group, phase);
        tell();
      }
    } catch (TuttiException e) {
      failed(e);
    }
  }

  private static void tell() {
    System.out.println("ON");
  }

  private static void failed(TuttiException e) {
    int blamed = e instanceof CollectiveException failure ? failure.failedRank().orElse(-1) : -2;
    System.out.println(
        "FAILED " + blamed + " " + began + " " + System.currentTimeMillis() + " " + e.getMessage());
  }

  private static void step(ProcessGroup group, Phase phase) {
    List<Integer> all = IntStream.range(0, group.size()).boxed().toList();
    switch (phase) {
      case SPLIT -> group.split(0, group.rank()).orElseThrow().close();
      case SUBGROUP -> group.subgroup(all).orElseThrow().close();
      case MESSAGES -> {
        Tensor received = Tensor.of(new float[ELEMENTS]);
        Work receive =
            group.recv(
                received, (group.rank() + group.size() - 1) % group.size(), 0, CallOptions.ASYNC);
        group.send(Tensor.of(new float[ELEMENTS]), (group.rank() + 1) % group.size());
        receive.await();
      }
      default -> group.allReduce(Tensor.of(new float[ELEMENTS]));
    }
  }
}
