package dev.tutti.cli.run;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The environment of one rank, with the variable names that torchrun uses. */
final class RankEnvironment {
  private RankEnvironment() {}

  /**
   * Returns the complete environment of a rank: that of the plan, plus what torchrun would set.
   *
   * @param plan the plan to launch
   * @param ranks the position of this node's ranks
   * @param localRank the number of the process on this node, from 0
   * @param attempt the number of previous restarts of all ranks
   */
  static Map<String, String> of(LaunchPlan plan, RankRange ranks, int localRank, int attempt) {
    String rank = Integer.toString(ranks.firstRank() + localRank);
    String worldSize = Integer.toString(ranks.worldSize());
    Map<String, String> environment = new HashMap<>(plan.environment());
    environment.put("RANK", rank);
    environment.put("LOCAL_RANK", Integer.toString(localRank));
    environment.put("GROUP_RANK", Integer.toString(plan.nodeRank()));
    environment.put("ROLE_RANK", rank);
    environment.put("ROLE_NAME", plan.role());
    environment.put("WORLD_SIZE", worldSize);
    environment.put("LOCAL_WORLD_SIZE", Integer.toString(plan.localSize()));
    environment.put("GROUP_WORLD_SIZE", Integer.toString(plan.nodes()));
    environment.put("ROLE_WORLD_SIZE", worldSize);
    environment.put("MASTER_ADDR", ranks.masterAddress());
    environment.put("MASTER_PORT", Integer.toString(ranks.masterPort()));
    environment.put("TORCHELASTIC_RESTART_COUNT", Integer.toString(attempt));
    environment.put("TORCHELASTIC_MAX_RESTARTS", Integer.toString(plan.maxRestarts()));
    environment.put("TORCHELASTIC_RUN_ID", plan.runId());
    environment.put("TORCHELASTIC_USE_AGENT_STORE", "True");
    environment.putIfAbsent("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (plan.localSize() > 1) {
      environment.putIfAbsent("OMP_NUM_THREADS", "1");
    }
    return environment;
  }

  /** Returns the environment of a process that joins in place of a rank, so it has no rank yet. */
  static Map<String, String> ofJoiner(LaunchPlan plan, RankRange ranks, int localRank) {
    Map<String, String> environment = of(plan, ranks, localRank, 0);
    List.of("RANK", "ROLE_RANK", "WORLD_SIZE", "ROLE_WORLD_SIZE").forEach(environment::remove);
    return environment;
  }
}
