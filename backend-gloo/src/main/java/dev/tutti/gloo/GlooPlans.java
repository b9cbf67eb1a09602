package dev.tutti.gloo;

import dev.tutti.OpType;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.SocketPlans;
import dev.tutti.gloo.hier.TwoLevelPlans;
import dev.tutti.gloo.shm.ShmPlans;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import dev.tutti.spi.PlanRequest;
import java.util.List;
import java.util.Optional;

/** Returns the steps of operations in groups of Tutti ranks. */
final class GlooPlans {
  private static final OperationPlan ALONE = new OperationPlan("", List.of());

  private GlooPlans() {}

  /**
   * Returns the table of algorithms between ranks of Tutti.
   *
   * @param wanted the table of the settings
   * @param crowded whether all go over sockets and outnumber the cores of a host
   */
  static AlgorithmTable table(AlgorithmTable wanted, boolean crowded) {
    return crowded ? wanted.whereRanksShareCores() : wanted;
  }

  /**
   * Returns the steps, or empty if the operation is not known.
   *
   * @param request the operation
   * @param wanted the table of the settings
   * @param shared the bytes of memory that the ranks of a host share
   * @param twoLevel whether they share it if there are several hosts
   */
  static Optional<OperationPlan> plan(
      PlanRequest request, AlgorithmTable wanted, long shared, boolean twoLevel) {
    int each = request.ranksPerHost();
    if (request.ranks() == 1) {
      return Optional.of(ALONE);
    }
    boolean isOneHost = request.hosts() == 1;
    if (shared == 0 || each == 1 || !(isOneHost || twoLevel)) {
      return overSockets(request, table(wanted, each > request.coresPerHost()));
    }
    ShmPlans host = new ShmPlans(each, shared, request.settings().get(SharedHeap.SETTING));
    if (isOneHost && request.type() != OpType.SEND) {
      return host.plan(request.type(), request.bytes());
    }
    AlgorithmTable table = table(wanted, false);
    return new TwoLevelPlans(host, table, request.hosts(), each)
        .plan(request.type(), request.bytes())
        .or(() -> overSockets(request, table));
  }

  private static Optional<OperationPlan> overSockets(PlanRequest request, AlgorithmTable table) {
    return SocketPlans.plan(table, request.type(), request.bytes(), request.ranks())
        .map(
            plan ->
                new OperationPlan(
                    plan.path(),
                    plan.steps().stream()
                        .map(step -> sending(step, request.ranksPerHost()))
                        .toList()));
  }

  /** Of ranks that send to the ones behind them, as many as that is far leave their host. */
  private static Step sending(Step step, int ranksPerHost) {
    return step.among(1, Math.min(step.distance(), ranksPerHost));
  }
}
