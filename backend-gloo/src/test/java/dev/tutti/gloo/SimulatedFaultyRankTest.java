package dev.tutti.gloo;

import static dev.tutti.gloo.FaultyRankTest.ODD;
import static dev.tutti.gloo.FaultyRankTest.SHORT;
import static dev.tutti.gloo.FaultyRankTest.SIZE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.gloo.FaultyRankTest.Fault;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Lets one of four ranks on simulated hosts do something that the others do not expect: all ranks
 * name that rank, in time. {@link FaultyRankTest} uses shared memory, and once sockets.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedFaultyRankTest {
  private static <T> List<T> run(RanksOnHosts.Body<T> body) throws Exception {
    return RanksOnHosts.startReduced(SIZE, body).end(SIZE);
  }

  private static void assertNamed(Fault fault) throws Exception {
    FaultyRankTest.assertDisagreement(run(group -> FaultyRankTest.failureOf(group, fault)));
  }

  @Simulated
  void aRankWithAnotherTypeIsNamedOnAllRanks() throws Exception {
    assertNamed(Fault.OTHER_TYPE);
  }

  @Simulated
  void aRankWithALongerTensorIsNamedOnAllRanks() throws Exception {
    assertNamed(Fault.LONGER);
  }

  @Simulated
  void aRankWithAMuchLongerTensorIsNamedOnAllRanks() throws Exception {
    assertNamed(Fault.MUCH_LONGER);
  }

  @Simulated
  void aRankWithAnotherOperationIsNamedOnAllRanks() throws Exception {
    assertNamed(Fault.OTHER_OPERATION);
  }

  @Simulated
  void aLateRankIsNamedOnAllRanks() throws Exception {
    CountDownLatch failed = new CountDownLatch(SIZE - 1);
    List<Throwable> thrown =
        run(
            group -> {
              if (group.rank() == ODD) {
                failed.await();
                return catchThrowable(() -> group.allReduce(Tensor.of(1f)));
              }
              Duration start = Simulation.now();
              Throwable failure =
                  catchThrowable(
                      () ->
                          group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.timeout(SHORT)));
              assertThat(Simulation.now().minus(start)).isBetween(SHORT, SHORT.multipliedBy(2));
              failed.countDown();
              return failure;
            });
    FaultyRankTest.assertLate(thrown);
  }

  /** Lets a rank be rejected and close its group, as it does at the end of a {@code try}. */
  @Simulated
  void ranksThatWaitForARefusedOneLearnWhy() throws Exception {
    FaultyRankTest.assertRefusal(run(FaultyRankTest::failureBesideARefusal));
  }

  /**
   * Lets a collective time out while a message and another collective with longer timeouts wait.
   */
  @Simulated
  void aTimeoutIsThatOfTheOperationThatHadIt() throws Exception {
    CountDownLatch failed = new CountDownLatch(1);
    List<Boolean> _ =
        run(
            group -> {
              if (group.rank() == 0) {
                FaultyRankTest.assertSecondTimesOut(group, FaultyRankTest.startThree(group));
                failed.countDown();
              }
              // Otherwise other ranks may fail first, each in its own way.
              failed.await();
              return true;
            });
  }

  @Simulated
  void aRankThatDoesNotComeToTheGroupIsNamed() throws Exception {
    List<Throwable> thrown =
        RanksOnHosts.run(
            3,
            Simulation.store(),
            (options, rank) ->
                rank == 2
                    ? new RendezvousException("rank 2 does not come")
                    : catchThrowable(() -> ProcessGroup.init(options.withTimeout(SHORT))));
    assertThat(thrown)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContaining("rank 2")
                    .message()
                    .doesNotContainPattern("ranks [01], 2"));
  }
}
