package dev.tutti.checkpoint;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Tensor;
import dev.tutti.TooFewRanksException;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests elastic jobs whose programs make mistakes, or that have too few ranks. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ElasticTest {
  private static final ThreadLocal<GroupOptions> GIVEN = new ThreadLocal<>();

  private List<RankEnd> run(SimulatedWorld world, ElasticOptions options, Elastic.Program program) {
    return run(world, UnaryOperator.identity(), options, program);
  }

  private List<RankEnd> run(
      SimulatedWorld world,
      UnaryOperator<GroupOptions> change,
      ElasticOptions options,
      Elastic.Program program) {
    return world
        .withOptions(
            each -> {
              GroupOptions changed = change.apply(each);
              GIVEN.set(changed);
              return changed;
            })
        .run(group -> Elastic.run(group, options.withGroup(GIVEN.get()), program))
        .ends();
  }

  @Test
  void whoseProgramFailsLeavesAndTheOthersGoOn() {
    List<Integer> sizes = new ArrayList<>();
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(3),
            ElasticOptions.DEFAULT,
            generation -> {
              ProcessGroup group = generation.group();
              sizes.add(group.size());
              long step = generation.restore(Contents.of());
              if (group.size() == 3 && group.rank() == 1) {
                throw new IllegalStateException("a bad record");
              }
              generation.commit(step + 1);
            });
    assertThat(sizes).containsExactly(3, 3, 3, 2, 2);
    assertThat(ends.get(1).failure()).hasMessage("a bad record");
    assertThat(ends.get(0).failure()).isNull();
    assertThat(ends.get(2).failure()).isNull();
  }

  /** Provides backends that rank 1 of three cannot create. */
  private static BackendProvider notCreatedOnRank1(BackendProvider provider) {
    return (BackendProvider)
        Proxy.newProxyInstance(
            BackendProvider.class.getClassLoader(),
            new Class<?>[] {BackendProvider.class},
            (_, method, arguments) -> {
              if (method.getName().equals("create")
                  && ((BackendContext) arguments[0]).rank() == 1
                  && ((BackendContext) arguments[0]).size() == 3) {
                throw new IllegalStateException("no memory on the device");
              }
              try {
                return method.invoke(provider, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @Test
  void whoCannotCreateItsBackendLeavesAndTheOthersGoOn() {
    List<Integer> sizes = new ArrayList<>();
    BackendProvider provider = notCreatedOnRank1(new ThreadedProvider());
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(4),
            each -> each.withProvider(provider),
            ElasticOptions.DEFAULT,
            generation -> {
              sizes.add(generation.group().size());
              long step = generation.restore(Contents.of());
              if (generation.group().rank() == 3 && generation.group().size() == 4) {
                throw new IllegalStateException("a bad record");
              }
              generation.commit(step + 1);
            });
    assertThat(sizes).containsExactly(4, 4, 4, 4, 2, 2);
    assertThat(ends.get(1).failure())
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("no memory on the device");
    assertThat(ends.get(0).failure()).isNull();
    assertThat(ends.get(2).failure()).isNull();
  }

  @Test
  void ranksThatHaveDoneDifferentStepsAllFail() {
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(2),
            ElasticOptions.DEFAULT,
            generation -> {
              long step = generation.restore(Contents.of());
              generation.commit(step + 1 + generation.group().rank());
            });
    assertThat(ends)
        .allSatisfy(
            end ->
                assertThat(end.failure())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("others 1 to 2"));
  }

  @Test
  void whereStatesDifferThatOfOneRankCounts() {
    List<Long> restored = new ArrayList<>();
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(3),
            ElasticOptions.DEFAULT,
            generation -> {
              Tensor sum = Tensor.of(0L);
              Contents state = Contents.of().copies("sum", List.of("sum"), List.of(sum));
              long step = generation.restore(state);
              restored.add(sum.getLong(0));
              sum.setLong(0, 5 + generation.group().rank());
              generation.commit(step + 1);
              if (generation.group().rank() == 2) {
                throw new IllegalStateException("a bad record");
              }
              generation.commit(step + 2);
            });
    assertThat(ends.get(2).failure()).hasMessage("a bad record");
    assertThat(restored).containsExactly(0L, 0L, 0L, 5L, 5L);
  }

  @ParameterizedTest
  @CsvSource({"3, 8", "1, 1"})
  void aJobStartsWithAsManyRanksAsItsOptionsAllow(int fewest, int most) {
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(2),
            ElasticOptions.DEFAULT.withSize(fewest, most),
            generation -> {
              throw new AssertionError("the program runs");
            });
    assertThat(ends)
        .hasSize(2)
        .allSatisfy(
            end ->
                assertThat(end.failure())
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage(
                        "the job starts with 2 ranks, but withSize allows %d to %d: start as many"
                            + " ranks, or change the sizes",
                        fewest, most));
  }

  @Test
  void tooFewWaitForOthersAndThenFail() {
    ElasticOptions options =
        ElasticOptions.DEFAULT.withSize(3, 3).withPatience(Duration.ofSeconds(50));
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(3),
            options,
            generation -> {
              long step = generation.restore(Contents.of());
              if (generation.group().rank() == 0) {
                throw new IllegalStateException("a bad record");
              }
              generation.commit(step + 1);
            });
    for (RankEnd end : ends.subList(1, 3)) {
      assertThat(end.failure())
          .isInstanceOf(TooFewRanksException.class)
          .hasMessageContaining("2 members are ready, and at least 3 are needed");
      assertThat(end.after()).isGreaterThanOrEqualTo(Duration.ofSeconds(50));
    }
  }

  @Test
  void whoWaitsIsNotTakenIfThereAreEnough() {
    List<String> groups = new ArrayList<>();
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(2).withJoiners(List.of(Duration.ofSeconds(1))),
            ElasticOptions.DEFAULT.withSize(1, 2),
            generation -> {
              groups.add(generation.group().name());
              for (long step = generation.restore(Contents.of()); step < 400; step++) {
                SimulatedWorld.sleep(Duration.ofMillis(100));
                generation.commit(step + 1);
              }
            });
    assertThat(groups).containsExactly("0", "0");
    assertThat(ends.get(2).failure()).isInstanceOf(RendezvousException.class);
  }

  @Test
  void partsNeedCheckpoints() {
    Contents parts =
        Contents.of()
            .parts(
                "optimizer",
                new ShardedState() {
                  @Override
                  public List<StatePart> parts() {
                    return List.of();
                  }

                  @Override
                  public Map<String, Long> counters() {
                    return Map.of();
                  }

                  @Override
                  public void restored(Map<String, Long> counters) {}
                });
    List<RankEnd> ends =
        run(
            SimulatedWorld.of(1),
            ElasticOptions.DEFAULT,
            generation ->
                assertThatThrownBy(() -> generation.restore(parts))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("a folder for checkpoints"));
    assertThat(ends.getFirst().failure()).isNull();
  }

  private static void close(FileChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs a rank for two generations, in one of which another holds its folder until it waits. */
  private static List<Long> runBesideAHolder(Path folder, int ofGeneration) throws Exception {
    List<Long> steps = new ArrayList<>();
    try (FileChannel holder = FileChannel.open(folder.resolve(".lock"), CREATE, WRITE)) {
      Time time =
          new ForwardingTime(Time.SYSTEM) {
            @Override
            public void park(Object blocker, long nanos) {
              if (blocker.equals(folder)) {
                close(holder);
              } else {
                super.park(blocker, nanos);
              }
            }
          };
      ElasticOptions options =
          ElasticOptions.DEFAULT
              .withGroup(GroupOptions.DEFAULT.withTime(time))
              .withCheckpoints(folder, 1);
      Elastic.Program program =
          generation -> {
            if (steps.size() == ofGeneration) {
              assertThat(holder.tryLock()).isNotNull();
            }
            long step = generation.restore(Contents.of());
            steps.add(step);
            generation.commit(step + 1);
            if (steps.size() == 1) {
              generation.group().revoke("another rank is silent");
              generation.commit(step + 2);
            }
          };
      ThreadedWorld.run(1, group -> Elastic.run(group, options, program));
    }
    return steps;
  }

  @Test
  void aLaterGenerationWaitsForTheFolderOfARankThatWasLeftOut(@TempDir Path folder)
      throws Exception {
    assertThat(runBesideAHolder(folder, 1)).containsExactly(0L, 1L);
  }

  @Test
  void theFirstGenerationWaitsForNoFolder(@TempDir Path folder) {
    assertThatThrownBy(() -> runBesideAHolder(folder, 0))
        .hasStackTraceContaining("is in use by another job");
  }
}
