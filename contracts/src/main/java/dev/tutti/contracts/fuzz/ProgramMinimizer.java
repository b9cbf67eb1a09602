package dev.tutti.contracts.fuzz;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * A minimizer that drops and simplifies parts of a failing program as long as it still fails in the
 * same way: a smaller program that seems to hang instead may only be slow.
 */
final class ProgramMinimizer {
  private final ProgramHost host;
  private final Duration patience;
  private final int attempts;
  private final long end;
  private Program best;
  private Outcome outcome;

  /**
   * Prepares the search.
   *
   * @param patience the time without progress after which a smaller program counts as hanging
   * @param attempts the number of times that a smaller program runs before it counts as passing
   * @param limit the maximum time for the search
   */
  ProgramMinimizer(
      ProgramHost host,
      Program failing,
      Outcome outcome,
      Duration patience,
      int attempts,
      Duration limit) {
    this.host = host;
    this.best = failing;
    this.outcome = outcome;
    this.patience = patience;
    this.attempts = attempts;
    this.end = System.nanoTime() + limit.toNanos();
  }

  /** Returns the smallest failing program that was found. */
  Program minimize() throws Exception {
    int before;
    do {
      before = weight();
      dropSteps();
      dropRanks();
      simplify();
    } while (weight() < before && !isLate());
    return best;
  }

  /** Returns how the smallest program failed. */
  Outcome outcome() {
    return outcome;
  }

  private int weight() {
    return best.toString().length() + best.size();
  }

  private boolean isLate() {
    return System.nanoTime() - end > 0;
  }

  private boolean take(Program smaller) throws Exception {
    if (smaller.equals(best)) {
      return false;
    }
    for (int attempt = 0; attempt < attempts && !isLate(); attempt++) {
      Outcome found = host.run(smaller, patience);
      if (found.ending() == outcome.ending()) {
        best = smaller;
        outcome = found;
        return true;
      }
    }
    return false;
  }

  private void dropSteps() throws Exception {
    for (int length = Math.max(1, best.steps().size() / 2); length >= 1; length /= 2) {
      for (int from = best.steps().size() - length; from >= 0 && !isLate(); from -= length) {
        if (from + length <= best.steps().size()) {
          List<Step> left = new ArrayList<>(best.steps());
          left.subList(from, from + length).clear();
          take(best.withSteps(withoutOrphans(left)));
        }
      }
    }
  }

  /** Drops the steps of groups that no step creates any longer. */
  private static List<Step> withoutOrphans(List<Step> steps) {
    Set<Integer> groups = new HashSet<>(Set.of(0));
    List<Step> left = new ArrayList<>();
    for (Step step : steps) {
      if (groups.contains(step.group())) {
        left.add(step);
        if (step.kind() == StepKind.SUBGROUP) {
          groups.add(step.child());
        } else if (step.kind() == StepKind.SPLIT) {
          step.members().stream().filter(c -> c >= 0).forEach(c -> groups.add(step.child() + c));
        }
      }
    }
    return left;
  }

  /**
   * Drops the last rank as long as all steps use the group of all ranks and can do without that
   * rank.
   */
  private void dropRanks() throws Exception {
    boolean dropped = true;
    while (dropped && best.size() > 1 && !isLate()) {
      int size = best.size() - 1;
      boolean possible =
          best.steps().stream()
              .allMatch(s -> s.group() == 0 && !s.kind().makesGroups() && fits(s, size));
      dropped =
          possible
              && take(
                  new Program(
                      best.seed(), size, best.steps().stream().map(s -> shrunk(s, size)).toList()));
    }
  }

  private static boolean fits(Step step, int size) {
    return step.root() < size && step.peer() < size;
  }

  private static Step shrunk(Step step, int size) {
    List<Integer> counts =
        switch (step.kind()) {
          case ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE_SPARSE -> step.counts().subList(0, size);
          case ALL_GATHER_OBJECT, BROADCAST_OBJECT, GATHER_OBJECT, SCATTER_OBJECT ->
              step.counts().subList(0, size);
          case ALL_TO_ALL, ALL_TO_ALL_SINGLE ->
              IntStream.range(0, size * size)
                  .mapToObj(i -> step.counts().get(i / size * (size + 1) + i % size))
                  .toList();
          default -> step.counts();
        };
    return step.withCounts(counts)
        .withThreads(step.threads().subList(0, size))
        .withDelays(step.delays().subList(0, size));
  }

  private void simplify() throws Exception {
    takeAll(s -> s.withThreads(s.threads().stream().map(_ -> 0).toList()));
    takeAll(s -> s.withDelays(s.delays().stream().map(_ -> Step.SYNC).toList()));
    takeAll(s -> s.withViews(false));
    takeAll(s -> s.withData(DType.FLOAT32, ReduceOp.Kind.SUM));
    takeAll(s -> s.withCounts(s.counts().stream().map(c -> Math.min(c, 1)).toList()));
    for (int i = 0; i < best.steps().size() && !isLate(); i++) {
      takeOne(i, s -> s.withDelays(s.delays().stream().map(_ -> Step.SYNC).toList()));
      takeOne(i, s -> s.withViews(false));
      takeOne(i, s -> s.withData(DType.FLOAT32, ReduceOp.Kind.SUM));
      UnaryOperator<Step> half =
          s -> s.withCounts(s.counts().stream().map(c -> c > 1 ? c / 2 : c).toList());
      takeOne(i, s -> s.withCounts(s.counts().stream().map(c -> Math.min(c, 1)).toList()));
      boolean halved;
      do {
        halved = takeOne(i, half);
      } while (halved);
    }
  }

  private void takeAll(UnaryOperator<Step> change) throws Exception {
    if (!isLate()) {
      take(best.withSteps(best.steps().stream().map(change).toList()));
    }
  }

  private boolean takeOne(int index, UnaryOperator<Step> change) throws Exception {
    List<Step> steps = new ArrayList<>(best.steps());
    steps.set(index, change.apply(steps.get(index)));
    return !isLate() && take(best.withSteps(steps));
  }
}
