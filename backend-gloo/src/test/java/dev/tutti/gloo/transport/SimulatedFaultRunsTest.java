package dev.tutti.gloo.transport;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.gloo.RanksOnHosts;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Lets groups on simulated hosts fail: no channel is left, and the simulation ends only when all
 * threads have ended. {@link FaultRunsTest} does so with processes, and looks for more.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedFaultRunsTest {
  private static final int SIZE = FaultRunsMain.SIZE;

  private static RanksOnHosts<Boolean> start(FaultRunsMain.Body body) {
    return RanksOnHosts.startReduced(
        SIZE,
        group -> {
          body.run(group);
          return true;
        });
  }

  private static void run(FaultRunsMain.Body body) throws Exception {
    List<Boolean> _ = start(body).end(SIZE);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftWhereNothingFails() throws Exception {
    run(FaultRunsMain::reduce);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftByRanksThatDisagreeOnTheType() throws Exception {
    run(FaultRunsMain::reduceOtherType);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftByRanksThatDisagreeOnTheSize() throws Exception {
    run(FaultRunsMain::reduceOtherSize);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftByAnAbort() throws Exception {
    run(FaultRunsMain::abort);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftBesideARankThatClosesEarly() throws Exception {
    run(FaultRunsMain::closeEarly);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftByMessagesThatNobodyTakes() throws Exception {
    run(FaultRunsMain::leaveMessages);
  }

  @Simulated(seeds = 5)
  void nothingIsLeftBesideARankThatDies() throws Exception {
    CountDownLatch running = new CountDownLatch(SIZE);
    RanksOnHosts<Boolean> ranks =
        start(
            group -> {
              running.countDown();
              FaultRunsMain.expectFailure(() -> reduceForEver(group));
            });
    running.await();
    SimulatedWorld.sleep(Duration.ofMillis(500));
    int victim = SIZE - 1;
    ranks.hosts().get(victim).crash();
    List<Boolean> _ = ranks.end(victim);
  }

  private static void reduceForEver(ProcessGroup group) {
    while (true) {
      SimulatedWorld.sleep(Duration.ofMillis(100));
      group.allReduce(Tensor.allocate(DType.FLOAT32, 1000));
    }
  }
}
