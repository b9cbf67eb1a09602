package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests the warnings about operations that wait for long. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SlowOperationsTest implements Simulated.Fixture {
  /** After what time, as shipped, an operation is slow. */
  private static final Duration SLOW = Duration.ofSeconds(30);

  /** When a call at the start is found to be slow; groups are looked at each second. */
  private static final String FOUND = "3[0-2]000 ms: ";

  /** The same if the others cannot all answer, for which the asker waits 5 s. */
  private static final String FOUND_LATE = "3[5-7]000 ms: ";

  private LogCapture said;

  /** How long a collective takes. */
  private Duration time = Duration.ZERO;

  interface Role {
    void play(ProcessGroup group) throws Exception;
  }

  @Override
  public void open() {
    said = new LogCapture("dev.tutti.runtime.failure.SlowReports");
  }

  @Override
  public void close() {
    said.close();
  }

  /** Runs one role per rank. */
  private static void play(HashStore store, ScriptedProvider provider, Role... roles)
      throws Exception {
    var _ =
        Simulation.ranks(
            roles.length,
            store,
            provider,
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(patient(options))) {
                roles[rank].play(group);
                return rank;
              }
            });
  }

  private static GroupOptions patient(GroupOptions options) {
    return options.withTimeout(Duration.ofMinutes(10));
  }

  /** Returns a provider whose collectives end when the given number of ranks have come. */
  private static ScriptedProvider meeting(int size) {
    CyclicBarrier barrier = new CyclicBarrier(size);
    ScriptedProvider provider = new ScriptedProvider();
    provider.collective = op -> barrier.await();
    provider.abort = cause -> barrier.reset();
    return provider;
  }

  /** Asserts that the lines that were logged since the last call match, in any order. */
  private void assertSaid(String... patterns) {
    List<String> lines = said.take();
    assertThat(lines).hasSize(patterns.length);
    for (String pattern : patterns) {
      assertThat(lines).filteredOn(line -> line.matches(pattern)).as(pattern + lines).hasSize(1);
    }
  }

  private static void sleep(Duration duration) {
    SimulatedWorld.sleep(duration);
  }

  private static Work allReduceAsync(ProcessGroup group) {
    return group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
  }

  @Simulated
  void allThatWaitNameTheRankThatHasNotComeAndWhereItIs() throws Exception {
    Role waiting =
        group -> {
          group.allReduce(Tensor.of(1f));
          group.allReduce(Tensor.of(1f));
        };
    play(
        Simulation.store(),
        meeting(3),
        waiting,
        waiting,
        group -> {
          group.allReduce(Tensor.of(1f));
          sleep(SLOW.plusSeconds(10));
          String line =
              FOUND
                  + "rank %d/3, group 0: rank 2 is hung: it has not called allReduce #2, which 2 of"
                  + " 3 ranks called 3[01] s ago; its rank-2 thread is at .*";
          assertSaid(line.formatted(0), line.formatted(1));
          group.allReduce(Tensor.of(1f));
        });
  }

  @Simulated
  void ranksThatNeverJoinedAreListedTogether() throws Exception {
    try (ProcessGroup group =
        ProcessGroup.init(patient(Simulation.options(0, 3, Simulation.store(), meeting(2))))) {
      Work _ = allReduceAsync(group);
      sleep(SLOW.plusSeconds(10));
      assertSaid(
          FOUND
              + "rank 0/3, group 0: hung: rank 0 has waited for 3[01] s in allReduce #1; ranks 1, 2"
              + " did not join through this store, so they cannot be asked");
      group.abort("seen");
    }
  }

  @Simulated
  void aQuestionIsNoFailure() throws Exception {
    HashStore store = Simulation.store();
    play(
        store,
        meeting(2),
        group -> group.allReduce(Tensor.of(1f)),
        group -> {
          sleep(SLOW.plusSeconds(10));
          assertThat(said.take()).hasSize(1);
          assertThat(store.check(List.of("tutti/0/event/1"))).isTrue();
          group.allReduce(Tensor.of(1f));
          assertThat(group.failure()).isEmpty();
        });
  }

  @Simulated
  void aFailureAfterAQuestionIsFound() throws Exception {
    play(
        Simulation.store(),
        meeting(2),
        group -> {
          Work _ = allReduceAsync(group);
          CollectiveException failure = Simulation.failure(group);
          assertThat(failure.failedRank()).hasValue(1);
          assertThat(Simulation.now()).isEqualTo(SLOW.plusSeconds(10));
        },
        group -> {
          sleep(SLOW.plusSeconds(10));
          assertThat(said.take()).hasSize(1);
          group.abort("enough");
          assertThat(Simulation.failure(group)).hasMessageContaining("enough");
        });
  }

  @Simulated
  void aReceiveNamesThePeerAndWhatThatWaitsIn() throws Exception {
    play(
        Simulation.store(),
        ScriptedProvider.deaf(),
        group -> {
          Work _ = group.recv(Tensor.of(0f), 1, 7, CallOptions.ASYNC);
          sleep(SLOW.plusSeconds(10));
          String end = "rank 2 did not send in time; its rank-2 thread is at .*";
          assertSaid(
              FOUND
                  + "rank 0/3, group 0: rank 2 is hung: rank 0 has waited for 3[01] s in recv #1"
                  + " from rank 1, tag 7; rank 1 did not send in time; it waits in recv #1 from"
                  + " rank 2, tag 8, "
                  + end,
              FOUND
                  + "rank 1/3, group 0: rank 2 is hung: rank 1 has waited for 3[01] s in recv #1"
                  + " from rank 2, tag 8; "
                  + end);
          group.abort("enough");
        },
        group -> {
          Work _ = group.recv(Tensor.of(0f), 2, 8, CallOptions.ASYNC);
          var _ = Simulation.failure(group);
        },
        group -> {
          var _ = Simulation.failure(group);
        });
  }

  @Simulated
  void severalMessagesAreOneLine() throws Exception {
    play(
        Simulation.store(),
        ScriptedProvider.deaf(),
        group -> {
          for (int i = 0; i < 5; i++) {
            Work _ = group.recv(Tensor.of(0f), 1, i, CallOptions.ASYNC);
          }
          sleep(SLOW.plusSeconds(10));
          assertSaid(
              FOUND
                  + "rank 0/2, group 0: rank 1 is hung: rank 0 has waited for 3[01] s in recv #1"
                  + " from rank 1, tag 0; rank 1 did not send in time; its rank-1 thread is at"
                  + " .*; 4 more messages wait as well");
          group.abort("enough");
        },
        group -> {
          var _ = Simulation.failure(group);
        });
  }

  @Simulated
  void aRankThatClosedIsNamed() throws Exception {
    play(
        Simulation.store(),
        meeting(2),
        group -> {
          Work work = allReduceAsync(group);
          sleep(SLOW.plusSeconds(10));
          assertSaid(
              FOUND_LATE
                  + "rank 0/2, group 0: rank 1 has left: rank 0 has waited for 3[01] s in allReduce"
                  + " #1; rank 1 closed the group \\(it has called no collective so far\\)");
          work.abort();
        },
        ProcessGroup::close);
  }

  @Simulated
  void itIsSaidAgainAndZeroSaysNothing() {
    CountDownLatch end = new CountDownLatch(1);
    ScriptedProvider slow = new ScriptedProvider();
    slow.collective = op -> end.await();
    GroupOptions options = patient(Simulation.options(0, 1, Simulation.store(), slow));
    GroupOptions silently =
        Simulation.with(options.withStore(Simulation.store()), "TUTTI_SLOW", "0");
    try (ProcessGroup silent = ProcessGroup.init(silently);
        ProcessGroup group = ProcessGroup.init(options)) {
      Work other = silent.broadcast(Tensor.of(1f), 0, CallOptions.ASYNC);
      Work work = group.barrier(CallOptions.ASYNC);
      sleep(Duration.ofMinutes(5));
      String line = "%s ms: rank 0/1, group 0: hung: rank 0 has waited for %s s in barrier #1";
      assertSaid(
          line.formatted("3[01]000", "3[01]"),
          line.formatted("6[0-3]000", "6[0-3]"),
          line.formatted("12[0-7]000", "12[0-7]"),
          line.formatted("2[45]\\d000", "2[45]\\d"));
      end.countDown();
      work.await();
      other.await();
    }
    assertThat(said.take()).isEmpty();
  }

  @Simulated
  void whatEndsInTimeIsNotSaid() {
    ScriptedProvider quick = new ScriptedProvider();
    quick.collective = op -> sleep(time);
    GroupOptions options = patient(Simulation.options(0, 1, Simulation.store(), quick));
    try (ProcessGroup group = ProcessGroup.init(options)) {
      for (int i = 0; i < 1000; i++) {
        group.allReduce(Tensor.of(1f));
      }
      time = SLOW.minusMillis(100);
      group.allReduce(Tensor.of(1f));
      assertThat(said.take()).isEmpty();
      time = SLOW.plusSeconds(3);
      group.allReduce(Tensor.of(1f));
      assertSaid(
          "6[0-2]\\d00 ms: rank 0/1, group 0: hung: rank 0 has waited for 3[0-2] s in allReduce"
              + " #1002");
    }
  }
}
