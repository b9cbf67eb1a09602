package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Posix;
import dev.tutti.cli.rank.RankOutput;
import dev.tutti.store.HashStore;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that what ranks print is complete, and what a launcher does if nobody takes it. */
@Order(1)
class LaunchOutputTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void hasOutputToTheLastByteWhenItReturns() throws InterruptedException {
    assertThat(launches.run(TestPlans.shell(2, "seq 1 20000; printf end"))).isZero();
    for (int rank = 0; rank < 2; rank++) {
      assertThat(launches.output.out(rank)).hasSize(20001).endsWith("19999", "20000", "end");
    }
  }

  /** An output that takes nothing until it is opened, as a terminal that is paused. */
  private final class PausedOutput implements RankOutput {
    private final CountDownLatch opened = new CountDownLatch(1);

    @Override
    public void lines(int rank, Channel channel, List<byte[]> lines) {
      try {
        assertThat(opened.await(10, TimeUnit.MINUTES)).isTrue();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      launches.output.lines(rank, channel, lines);
    }
  }

  /** Starts a rank that fails, and waits until that is reported. */
  private Future<Integer> startAndFail(
      ExecutorService threads, PausedOutput paused, AtomicReference<Launcher> started)
      throws InterruptedException {
    LaunchPlan plan = TestPlans.shell(1, "seq 1 5000; printf end >&2; exit 3");
    RankRange ranks = new RankRange(0, 1, plan.masterAddress(), 4711);
    CountDownLatch reported = new CountDownLatch(1);
    Launcher launcher =
        new Launcher(
            plan,
            new SingleNode(ranks, () -> {}, () -> {}, HashStore::new),
            paused,
            _ -> reported.countDown());
    started.set(launcher);
    Future<Integer> code = threads.submit(launcher::run);
    assertThat(reported.await(2, TimeUnit.MINUTES)).isTrue();
    return code;
  }

  @Test
  void keepsOutputThatNobodyTakesForAWhile() throws Exception {
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      PausedOutput paused = new PausedOutput();
      Future<Integer> code = startAndFail(threads, paused, new AtomicReference<>());
      paused.opened.countDown();
      assertThat(code.get(2, TimeUnit.MINUTES)).isEqualTo(3);
      assertThat(launches.output.out(0)).hasSize(5000).endsWith("4999", "5000");
      assertThat(launches.output.lines()).contains("0:ERR:end");
    }
  }

  @Test
  void aSignalEndsTheWaitForOutputThatNobodyTakes() throws Exception {
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      PausedOutput paused = new PausedOutput();
      AtomicReference<Launcher> launcher = new AtomicReference<>();
      Future<Integer> code = startAndFail(threads, paused, launcher);
      launcher.get().signalled(Posix.SIGTERM);
      assertThat(code.get(2, TimeUnit.MINUTES)).isEqualTo(3);
      assertThat(launches.output.lines()).isEmpty();
      paused.opened.countDown();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void stopsTheRanksWhenNobodyReadsTheOutput(int maxRestarts) throws Exception {
    LaunchPlan plan =
        TestPlans.of(
            2,
            maxRestarts,
            Optional.empty(),
            "sh",
            "-c",
            "[ $RANK = 0 ] && echo x; exec sleep 600");
    RankRange ranks = new RankRange(0, 2, plan.masterAddress(), 4711);
    RankOutput unread =
        new RankOutput() {
          @Override
          public void lines(int rank, Channel channel, List<byte[]> lines) {
            launches.output.lines(rank, channel, lines);
          }

          @Override
          public boolean isUnread() {
            return true;
          }
        };
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    assertThat(new Launcher(plan, node, unread, launches.messages::add).run()).isEqualTo(1);
    assertThat(launches.messages)
        .containsExactly("stopped because nobody reads the output any more");
    assertThat(launches.output.lines()).containsExactly("0:OUT:x");
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
  }
}
