package dev.tutti.cuda.collective;

import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.AllReduceLimits.Algorithm;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.PeerLinks;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import dev.tutti.spi.PlanRequest;
import java.util.List;
import java.util.Optional;

/**
 * Returns the steps of all-reduces by this project's kernels: sums of real numbers, between devices
 * that a switch connects. The flag of a chunk follows its bytes, so chunks take two rounds where
 * packets take one.
 */
public final class CudaPlans {
  private CudaPlans() {}

  /** Returns the steps, or empty if other operations or NCCL are requested. */
  public static Optional<OperationPlan> plan(PlanRequest request) {
    int ranks = request.ranks();
    return switch (request.type()) {
      case ALL_REDUCE ->
          ranks == 1
              ? Optional.of(new OperationPlan("", List.of()))
              : request.hosts() == 1 && ranks <= ChannelLayout.MAX_RANKS
                  ? Optional.of(allReduce((double) request.bytes(), ranks, limits(request)))
                  : Optional.empty();
      default -> Optional.empty();
    };
  }

  private static AllReduceLimits limits(PlanRequest request) {
    return CudaSettings.limits(request.settings(), request.ranks(), PeerLinks.SWITCH);
  }

  private static OperationPlan allReduce(double bytes, int ranks, AllReduceLimits limits) {
    double parts = 2 * bytes * (ranks - 1) / ranks;
    if (bytes <= limits.oneShotBytes()) {
      return plan(Algorithm.ONE_SHOT, Step.device(1, bytes * (ranks - 1)));
    }
    return bytes <= limits.twoShotBytes()
        ? plan(Algorithm.TWO_SHOT, Step.device(2, parts))
        : plan(Algorithm.CHUNKS, Step.device(4, parts));
  }

  private static OperationPlan plan(Algorithm algorithm, Step step) {
    return new OperationPlan(CollectiveLauncher.path(algorithm), List.of(step));
  }
}
