package dev.tutti.gloo.hier;

import dev.tutti.OpType;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.SocketPlans;
import dev.tutti.gloo.shm.ShmPlans;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Returns the steps of operations on several hosts with as many ranks each. */
public final class TwoLevelPlans {
  private final ShmPlans host;
  private final AlgorithmTable table;
  private final int hosts;
  private final int ranksPerHost;

  /**
   * Creates plans.
   *
   * @param host the steps within a host
   * @param table the table of algorithms between hosts
   * @param hosts the number of hosts
   * @param ranksPerHost the number of ranks on each of them
   */
  public TwoLevelPlans(ShmPlans host, AlgorithmTable table, int hosts, int ranksPerHost) {
    this.host = host;
    this.table = table;
    this.hosts = hosts;
    this.ranksPerHost = ranksPerHost;
  }

  /**
   * Returns the steps, or empty if the operation has no form on two levels.
   *
   * @param bytes the bytes of a rank's tensor; if each rank has a part, those of all parts
   */
  public Optional<OperationPlan> plan(OpType type, long bytes) {
    return switch (type) {
      case ALL_REDUCE -> plan(allReduce(bytes));
      case REDUCE -> plan(List.of(host.reduceToOne((double) bytes), leaders(OpType.REDUCE, bytes)));
      case BROADCAST ->
          plan(List.of(leaders(OpType.BROADCAST, bytes), host.broadcastFromOne((double) bytes)));
      case ALL_GATHER, ALL_GATHER_INTO -> plan(allGather(bytes));
      case REDUCE_SCATTER, REDUCE_SCATTER_INTO ->
          plan(List.of(host.reduceParts((double) bytes), columns(OpType.REDUCE_SCATTER, bytes)));
      case BARRIER -> plan(List.of(host.agree(), leaders(OpType.BARRIER, 0), host.agree()));
      default -> Optional.empty();
    };
  }

  private List<List<Step>> allReduce(long bytes) {
    return bytes >= TwoLevelAllReduce.PARTS_FROM
        ? List.of(
            host.reduceParts((double) bytes),
            columns(OpType.ALL_REDUCE, bytes),
            host.gatherParts((double) bytes))
        : List.of(
            host.reduceToOne((double) bytes),
            leaders(OpType.ALL_REDUCE, bytes),
            host.broadcastFromOne((double) bytes));
  }

  private List<List<Step>> allGather(long bytes) {
    double part = (double) bytes / hosts / ranksPerHost;
    Step exchange = Step.network(Math.max(1, hosts / 2), 1, hosts - 1, part);
    return List.of(
        List.of(exchange.among(ranksPerHost, ranksPerHost)), host.gatherParts((double) bytes));
  }

  /** Returns what one rank of each host does. */
  private List<Step> leaders(OpType type, long bytes) {
    return between(type, bytes, 1);
  }

  /** Returns what all ranks of a host do at the same time, each with its part of the bytes. */
  private List<Step> columns(OpType type, long bytes) {
    return between(type, Math.ceilDiv(bytes, ranksPerHost), ranksPerHost);
  }

  private List<Step> between(OpType type, long bytes, int sending) {
    return SocketPlans.plan(table, type, bytes, hosts).orElseThrow().steps().stream()
        .map(step -> step.among(ranksPerHost, sending))
        .toList();
  }

  private static Optional<OperationPlan> plan(List<List<Step>> phases) {
    List<Step> steps = new ArrayList<>();
    phases.forEach(steps::addAll);
    return Optional.of(new OperationPlan(TwoLevelBackend.PATH, steps));
  }
}
