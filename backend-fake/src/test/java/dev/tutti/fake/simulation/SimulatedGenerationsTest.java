package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.ExpelledException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import dev.tutti.shared.MemberWorlds;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs ranks that reduce while processes crash, stand still, lose the store, and join, and that
 * change the group whenever it fails or somebody waits. {@code -Dtutti.seeds=100000} sets how many
 * worlds there are, {@code -Dtutti.firstSeed=…} with which seed they begin.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedGenerationsTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 30);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);
  private static final Duration TIMEOUT = Duration.ofSeconds(8);
  private static final Duration END = Duration.ofSeconds(60);
  private static final int STEPS_OF_LIFE = 10;

  /** What the processes of a world saw, by the name of the generation. */
  private static final class Seen {
    private final Map<String, Map<Integer, Long>> members = new TreeMap<>();
    private final Map<String, Integer> sizes = new TreeMap<>();
    private final Map<String, Long> sums = new TreeMap<>();
    private final List<String> lasts = new ArrayList<>();
    private final AtomicInteger processes = new AtomicInteger();
    private int changes;

    /** Notes that a process is in a generation, in which it is a rank that no other one is. */
    synchronized void enter(ProcessGroup group, long self) {
      Map<Integer, Long> ranks = members.computeIfAbsent(group.name(), _ -> new TreeMap<>());
      Long other = ranks.put(group.rank(), self);
      assertThat(other).as("rank %d of %s", group.rank(), group.name()).isNull();
      Integer size = sizes.putIfAbsent(group.name(), group.size());
      assertThat(size == null || size == group.size()).as("sizes of %s", group.name()).isTrue();
      changes += group.name().equals("0") ? 0 : 1;
    }

    /** Notes a sum, which must be the same in all steps of a generation. */
    synchronized void sum(ProcessGroup group, long sum) {
      Long other = sums.putIfAbsent(group.name(), sum);
      assertThat(other == null || other == sum).as("sums of %s", group.name()).isTrue();
      assertThat(Long.bitCount(sum)).as("ranks in a sum").isEqualTo(group.size());
    }

    synchronized void last(ProcessGroup group) {
      lasts.add(group.name());
    }

    /** Checks that each sum is that of the members of its generation. */
    void check() {
      sums.forEach(
          (name, sum) -> {
            long known = members.get(name).values().stream().mapToLong(Long::longValue).sum();
            assertThat(sum & known).as("members in the sum of %s", name).isEqualTo(known);
            if (members.get(name).size() == sizes.get(name)) {
              assertThat(sum).isEqualTo(known);
            }
          });
    }
  }

  /** Runs a process until a rank of its group sees the end, or until it cannot continue. */
  private static void run(ProcessGroup first, Seen seen) {
    long self = 1L << seen.processes.getAndIncrement();
    ProcessGroup group = first;
    seen.enter(group, self);
    try {
      for (int step = 1; ; step++) {
        SimulatedWorld.sleep(Duration.ofMillis(200));
        boolean isDue = step % STEPS_OF_LIFE == 0;
        try {
          if (step(group, self, seen)) {
            break;
          }
        } catch (CollectiveException e) {
          isDue = true;
        }
        if (isDue) {
          ProcessGroup next = change(group);
          if (!next.equals(group)) {
            group = next;
            seen.enter(group, self);
          }
        }
      }
      seen.last(group);
    } finally {
      group.close();
    }
  }

  private static ProcessGroup change(ProcessGroup group) {
    return group.reconfigure(ReconfigureOptions.DEFAULT.withTimeout(TIMEOUT));
  }

  private static boolean isOver() {
    return SimulatedProcess.current().time().nanoTime() > END.toNanos();
  }

  /** Takes a step with the other ranks, and returns whether it is over for any of them. */
  private static boolean step(ProcessGroup group, long self, Seen seen) {
    Tensor tensor = Tensor.of(self, isOver() ? 1L : 0L);
    group.allReduce(tensor);
    seen.sum(group, tensor.toLongArray()[0]);
    if (group.size() > 1) {
      int next = (group.rank() + 1) % group.size();
      int before = (group.rank() + group.size() - 1) % group.size();
      Tensor received = Tensor.of(-1L);
      var receive = group.recv(received, before, 0, CallOptions.ASYNC);
      group.send(Tensor.of((long) group.rank()), next);
      receive.await();
      assertThat(received.toLongArray()).containsExactly(before);
    }
    return tensor.toLongArray()[1] > 0;
  }

  private static SimulatedWorld world(long seed) {
    return MemberWorlds.of(seed, TIMEOUT, Duration.ofSeconds(30), Duration.ofSeconds(40));
  }

  private static Outcome run(SimulatedWorld world, Seen seen) {
    return world.run(group -> run(group, seen));
  }

  @Test
  void processesContinueTogetherAndASeedRepeatsIt() {
    int changes = MemberWorlds.sum(FIRST, SEEDS, SimulatedGenerationsTest::check);
    assertThat(changes).as("changes").isGreaterThan(SEEDS);
  }

  @ParameterizedTest
  @ValueSource(longs = {2209, 2669, 4741, 5227})
  void aProcessMayJoinAfterAllRanksHaveEnded(long seed) {
    int _ = check(seed);
  }

  @ParameterizedTest
  @ValueSource(longs = {508032, 512324})
  void ranksMayDisagreeAtTheDeadlineOfOneOfThem(long seed) {
    int _ = check(seed);
  }

  private static int check(long seed) {
    SimulatedWorld world = world(seed);
    Seen seen = new Seen();
    Outcome outcome = run(world, seen);
    String what = MemberWorlds.describe(world, outcome);
    MemberWorlds.requireProperEnds(world, outcome, List.of(ExpelledException.class));
    seen.check();
    if (world.plan().faults().isEmpty()) {
      assertThat(seen.lasts).as(what).hasSizeGreaterThanOrEqualTo(world.size());
      assertThat(seen.lasts.stream().distinct()).as(what).hasSize(1);
    }
    if (MemberWorlds.isCrashOnly(world)) {
      assertThat(seen.lasts.stream().distinct().count()).as(what).isLessThanOrEqualTo(1);
    }
    Outcome again = run(world, new Seen());
    assertThat(again.hash()).as("seed %d", seed).isEqualTo(outcome.hash());
    return seen.changes;
  }

  private static final ThreadLocal<Store> STORE = new ThreadLocal<>();

  /** Returns where the log of a job begins. */
  private static long firstOfLog(Store store) {
    String first = store.getString("tutti/0/event/first");
    return Long.parseLong(first.lines().findFirst().orElseThrow());
  }

  @Test
  void whoStoodStillForGenerationsIsLeftOut() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      List<Fault> faults = new ArrayList<>();
      for (int rank = 2; rank < 4; rank++) {
        Duration length = Duration.ofSeconds(45).plusMillis(random.nextInt(200));
        faults.add(new Fault(Kind.PAUSE, rank, Duration.ofSeconds(2), length));
      }
      List<Duration> joiners = Stream.of(13, 20, 27, 34).map(Duration::ofSeconds).toList();
      Seen seen = new Seen();
      long[] first = new long[1];
      Outcome outcome =
          SimulatedWorld.of(4)
              .withSeed(seed)
              .withTimeout(TIMEOUT)
              .withFaults(new FaultPlan(faults))
              .withJoiners(joiners)
              .withOptions(
                  options -> {
                    STORE.set(options.store().orElseThrow());
                    return options;
                  })
              .run(
                  group -> {
                    Store store = STORE.get();
                    boolean isFirst = group.rank() == 0 && group.name().equals("0");
                    run(group, seen);
                    if (isFirst) {
                      first[0] = firstOfLog(store);
                    }
                  });
      String what = "seed %d, %s".formatted(seed, outcome);
      seen.check();
      for (RankEnd end : outcome.ends()) {
        if (end.rank() == 2 || end.rank() == 3) {
          assertThat(end.failure()).as(what).isInstanceOf(ExpelledException.class);
        } else {
          assertThat(end.failure()).as(what).isNull();
        }
      }
      assertThat(seen.lasts.stream().distinct()).as(what).hasSize(1);
      assertThat(first[0]).as(what).isGreaterThan(8);
    }
  }

  private static final Duration PAUSED_AT = Duration.ofSeconds(2);
  private static final Duration PAUSED_FOR = Duration.ofSeconds(25);

  /** What the processes of a world saw in which a rank dies after another one has come back. */
  private static final class SeenDeath {
    private static final int DIES = 1;

    private static final ThreadLocal<GroupOptions> GIVEN = new ThreadLocal<>();

    private final List<String> deaths = new ArrayList<>();
    private final List<Duration> changes = new ArrayList<>();
    private boolean isComplete;

    GroupOptions take(GroupOptions options) {
      GroupOptions own = options.withStore(withoutWills(options.store().orElseThrow()));
      GIVEN.set(own);
      return own;
    }

    /** Reduces until the end of the world, in one group after the other. */
    void run(ProcessGroup first) {
      ProcessGroup group = first;
      try {
        while (now().compareTo(END) < 0) {
          group = isWorking(group) ? group : goOn(group);
        }
      } finally {
        group.close();
      }
    }

    private boolean isWorking(ProcessGroup group) {
      SimulatedWorld.sleep(Duration.ofMillis(100));
      boolean isBack = now().compareTo(PAUSED_AT.plus(PAUSED_FOR)) > 0;
      try {
        Tensor newcomers = Tensor.of((long) group.newcomers());
        group.allReduce(newcomers);
        isComplete |= isBack && group.size() == 3;
        return newcomers.getLong(0) == 0;
      } catch (CollectiveException e) {
        if (isBack) {
          deaths.add(e.failedRank().orElse(-1) + " of " + group.size() + ": " + e.getMessage());
        }
        return false;
      }
    }

    private ProcessGroup goOn(ProcessGroup group) {
      Duration since = now();
      try {
        ProcessGroup next = change(group);
        if (since.compareTo(PAUSED_AT.plus(PAUSED_FOR)) > 0) {
          changes.add(now().minus(since));
        }
        return next;
      } catch (ExpelledException e) {
        group.close();
        return ProcessGroup.join(GIVEN.get());
      }
    }

    private static Duration now() {
      return Duration.ofNanos(SimulatedProcess.current().time().nanoTime());
    }

    /** Returns a view of a store that cannot detect the end of a process. */
    private static Store withoutWills(Store store) {
      return (Store)
          Proxy.newProxyInstance(
              Store.class.getClassLoader(),
              new Class<?>[] {Store.class},
              (_, method, args) -> {
                try {
                  Object result = method.invoke(store, args);
                  return method.getName().equals("duplicate")
                      ? withoutWills((Store) result)
                      : result;
                } catch (InvocationTargetException e) {
                  throw e.getCause();
                }
              });
    }
  }

  @Test
  void aRankThatCameBackReportsWhoDies() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      Duration dies = PAUSED_AT.plus(PAUSED_FOR).plusMillis(1000 + random.nextInt(5000));
      Fault pause = new Fault(Kind.PAUSE, 2, PAUSED_AT, PAUSED_FOR);
      Fault death = new Fault(Kind.CRASH, SeenDeath.DIES, dies, Duration.ZERO);
      SeenDeath seen = new SeenDeath();
      Outcome outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .withTimeout(TIMEOUT)
              .withFaults(new FaultPlan(List.of(pause, death)))
              .withOptions(seen::take)
              .run(seen::run);
      String what = "seed %d, %s, %s: %s".formatted(seed, seen.deaths, seen.changes, outcome);
      assertThat(seen.isComplete).as(what).isTrue();
      assertThat(seen.deaths)
          .as(what)
          .hasSize(2)
          .allMatch(each -> each.startsWith(SeenDeath.DIES + " of 3: "));
      assertThat(seen.changes).as(what).allMatch(each -> each.compareTo(Duration.ofSeconds(1)) < 0);
      assertThat(outcome.ends()).as(what).allMatch(end -> end.failure() == null);
    }
  }
}
