package dev.tutti.gloo.shm;

import dev.tutti.OpType;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import java.util.List;
import java.util.Optional;

/**
 * Returns the steps of operations in the memory of a host, for tensors of {@code Tensor.allocate}.
 * The bytes of a step are those that the busiest rank writes and reads.
 */
public final class ShmPlans {
  private final int ranks;
  private final boolean mapsTensors;
  private final long stage;

  /**
   * Creates plans.
   *
   * @param ranks the number of ranks of the host
   * @param budget the bytes of memory that they share
   * @param mapsTensors whether they map each other's large tensors
   * @throws IllegalArgumentException if the budget is too small, or there are too many ranks
   */
  public ShmPlans(int ranks, long budget, boolean mapsTensors) {
    this.ranks = ranks;
    this.mapsTensors = mapsTensors;
    this.stage = ShmLayout.within(ranks, budget).stageBytes();
  }

  /**
   * Returns the steps, or empty if the operation is not known.
   *
   * @param bytes the bytes of a rank's tensor; if each rank has a part, those of all parts
   */
  public Optional<OperationPlan> plan(OpType type, long bytes) {
    return steps(type, (double) bytes);
  }

  private Optional<OperationPlan> steps(OpType type, double bytes) {
    double part = bytes / ranks;
    return switch (type) {
      case ALL_REDUCE -> Optional.of(allReduce(bytes));
      case REDUCE -> Optional.of(new OperationPlan(ShmBackend.STAGED, reduce(bytes, false)));
      case BROADCAST -> Optional.of(broadcast(bytes));
      case ALL_GATHER, ALL_GATHER_INTO -> Optional.of(allGather(part));
      case REDUCE_SCATTER, REDUCE_SCATTER_INTO -> Optional.of(reduceScatter(bytes));
      case GATHER -> Optional.of(staged(1 + chunks(part, stage), part * (ranks - 1) + part));
      case SCATTER -> Optional.of(staged(1 + ranks * chunks(part, stage), bytes + part));
      case ALL_TO_ALL, ALL_TO_ALL_SINGLE -> Optional.of(allToAll(part));
      case BARRIER -> Optional.of(plan(ShmBackend.FLAGS, Step.memory(1, 0)));
      default -> Optional.empty();
    };
  }

  private OperationPlan allReduce(double bytes) {
    if (AllReduceRule.isSmall(bytes)) {
      return new OperationPlan(ShmBackend.ONE_SHOT, oneShot(bytes));
    }
    if (!isMapped(bytes)) {
      return new OperationPlan(ShmBackend.STAGED, reduce(bytes, true));
    }
    double rounds = chunks(bytes, DirectAllReduce.CHUNK) + 2;
    double copied = bytes + (1 - 1.0 / ranks) * bytes;
    return plan(ShmBackend.DIRECT, Step.memory(rounds, copied).reducing(bytes / rounds));
  }

  private List<Step> oneShot(double bytes) {
    return List.of(Step.memory(1, 2 * bytes).reducing(ranks * bytes));
  }

  /** Returns the steps of a reduction, after which all ranks may take the result. */
  private List<Step> reduce(double bytes, boolean all) {
    double rounds = chunks(bytes, stage) + 1;
    double copied = (all ? 2 : 1) * bytes + (all ? 2 - 1.0 / ranks : 1) * bytes;
    return List.of(Step.memory(rounds, copied).reducing(bytes / rounds));
  }

  private OperationPlan broadcast(double bytes) {
    return isMapped(bytes)
        ? plan(ShmBackend.DIRECT, Step.memory(2, 2 * bytes))
        : new OperationPlan(ShmBackend.STAGED, spread(bytes));
  }

  private List<Step> spread(double bytes) {
    double chunks =
        bytes <= ShmLayout.SLOT_BYTES
            ? 0
            : chunks(bytes, StagedBroadcast.chunk(stage, (long) bytes));
    return List.of(Step.memory(1 + chunks, 2 * bytes));
  }

  private OperationPlan allGather(double part) {
    if (part <= ShmLayout.SLOT_BYTES) {
      return staged(1, (2.0 * ranks - 1) * part);
    }
    return isMapped(part) || part >= StagedAllGather.LEAST_READ
        ? staged(2, 2.0 * ranks * part)
        : staged(chunks(part, stage), 2 * (ranks + 1) * part);
  }

  private OperationPlan reduceScatter(double bytes) {
    double part = bytes / ranks;
    if (isMapped(part)) {
      return plan(ShmBackend.DIRECT, Step.memory(2, part).reducing(bytes / 2));
    }
    double rounds = bytes <= ShmLayout.SLOT_BYTES ? 1 : chunks(part, Parts.piece(stage, ranks));
    return plan(ShmBackend.STAGED, Step.memory(rounds, 2 * bytes + part).reducing(bytes / rounds));
  }

  private OperationPlan allToAll(double part) {
    double rounds = isMapped(part) ? 2 : chunks(part, Parts.piece(stage, ranks));
    return staged(rounds, (isMapped(part) ? 2 : 4) * part * ranks);
  }

  /** Returns the step in which one rank of the host gets the reduction of all of them. */
  public List<Step> reduceToOne(double bytes) {
    return ranks == 1
        ? List.of()
        : bytes <= ShmLayout.SLOT_BYTES ? oneShot(bytes) : reduce(bytes, false);
  }

  /** Returns the step in which each rank of the host gets the reduction of its part. */
  public List<Step> reduceParts(double bytes) {
    double rounds = chunks(bytes, stage);
    double copied = (2 + 1.0 / ranks) * bytes;
    return ranks == 1 ? List.of() : List.of(Step.memory(rounds, copied).reducing(bytes / rounds));
  }

  /** Returns the step in which all ranks of the host get the part of each. */
  public List<Step> gatherParts(double bytes) {
    return ranks == 1 ? List.of() : List.of(Step.memory(chunks(bytes / ranks, stage), 2 * bytes));
  }

  /** Returns the step in which all ranks of the host get the bytes of one. */
  public List<Step> broadcastFromOne(double bytes) {
    return ranks == 1 ? List.of() : spread(bytes);
  }

  /** Returns the round in which all ranks of the host wait for each other. */
  public List<Step> agree() {
    return ranks == 1 ? List.of() : List.of(Step.memory(1, 0));
  }

  private boolean isMapped(double bytes) {
    return mapsTensors && bytes >= HostReads.LEAST_MAPPED;
  }

  private static OperationPlan staged(double rounds, double bytes) {
    return plan(ShmBackend.STAGED, Step.memory(rounds, bytes));
  }

  private static OperationPlan plan(String path, Step step) {
    return new OperationPlan(path, List.of(step));
  }

  private static double chunks(double bytes, long chunk) {
    return Math.max(1, Math.ceil(bytes / chunk));
  }
}
