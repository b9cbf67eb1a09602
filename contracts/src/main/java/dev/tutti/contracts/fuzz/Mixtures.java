package dev.tutti.contracts.fuzz;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A generator of programs with mixtures that are rare in random programs, or rarely happen there at
 * the right moment.
 */
final class Mixtures {
  private static final long SEED = 24;
  private static final int LATE = 1000;
  private static final int ROUNDS = 2;

  private final Capabilities capabilities;
  private final boolean onHost;
  private final int size;

  /**
   * Prepares the programs for a backend.
   *
   * @param onHost whether tensors are in host memory
   * @param size the number of ranks, at least 2
   */
  Mixtures(Capabilities capabilities, boolean onHost, int size) {
    this.capabilities = capabilities;
    this.onHost = onHost;
    this.size = size;
  }

  /** Creates all programs. */
  List<Program> all() {
    List<Program> programs = new ArrayList<>();
    if (isPossible(StepKind.MESSAGE)) {
      programs.add(manyMessagesAtOnce());
    }
    if (isPossible(StepKind.RING)) {
      for (int count : new int[] {1, 20_000}) {
        programs.add(relaysWhileCollectivesRun(count));
        programs.add(receivesBesideCollectives(count));
      }
      programs.add(largeMessagesBesideLargeCollectives());
    }
    if (isPossible(StepKind.ANY_SOURCE)) {
      programs.add(messagesOfAnyRankBesideMonitoredBarriers());
      programs.add(messagesOfTwoThreadsBehindCollectives());
    }
    programs.add(twoGroupsOnTheSameRanks());
    programs.add(smallAndLargeByTurns());
    programs.add(allRootsAtOnce());
    return programs;
  }

  private boolean isPossible(StepKind kind) {
    return kind.isPossible(capabilities, onHost);
  }

  private List<StepKind> collectives(Predicate<StepKind> condition) {
    return Stream.of(StepKind.values())
        .filter(kind -> !kind.isMessage() && !kind.makesGroups() && kind != StepKind.CLOSE)
        .filter(this::isPossible)
        .filter(condition)
        .toList();
  }

  private Program program(List<Step> steps) {
    return new Program(SEED, size, steps);
  }

  private Step step(List<Step> before, StepKind kind, int count) {
    int parts = Math.max(1, kind.parts(size));
    int each = kind == StepKind.ALL_REDUCE_SPARSE ? Math.min(count, 20) : count / parts;
    int[] counts = new int[kind.parts(size)];
    java.util.Arrays.fill(counts, Math.max(1, each));
    return Step.of(before.size(), kind, size, counts);
  }

  private Step message(List<Step> before, int from, int to, int count) {
    return step(before, StepKind.MESSAGE, count).withPeers(from, to, 0);
  }

  private List<Integer> byRank(int ofFirst, int ofOthers) {
    return IntStream.range(0, size).mapToObj(rank -> rank == 0 ? ofFirst : ofOthers).toList();
  }

  /**
   * Awaits a collective on rank 0 before it sends; the other ranks receive and pass on messages
   * before they await it.
   */
  private Program relaysWhileCollectivesRun(int count) {
    List<Step> steps = new ArrayList<>();
    for (StepKind kind : collectives(StepKind::canBeAsync)) {
      steps.add(step(steps, kind, count).withDelays(byRank(0, 2)));
      for (int from = 0; from + 1 < size; from++) {
        steps.add(message(steps, from, from + 1, 10));
      }
    }
    return program(steps);
  }

  /** Receives on one thread a message that is sent after the collective of another thread. */
  private Program receivesBesideCollectives(int count) {
    List<Step> steps = new ArrayList<>();
    for (int round = 0; round < ROUNDS; round++) {
      for (StepKind kind : collectives(kind -> kind != StepKind.SYMMETRIC)) {
        steps.add(step(steps, kind, count));
        steps.add(message(steps, 0, size - 1, count).withThreads(byRank(0, 1)));
      }
    }
    return program(steps);
  }

  private Program largeMessagesBesideLargeCollectives() {
    List<Step> steps = new ArrayList<>();
    for (int round = 0; round < ROUNDS; round++) {
      for (StepKind kind : collectives(k -> k == StepKind.ALL_REDUCE || k == StepKind.ALL_TO_ALL)) {
        steps.add(step(steps, kind, 200_000));
        steps.add(message(steps, 0, 1, 200_000).withThreads(byRank(1, 1)));
        steps.add(message(steps, 1, 0, 200_000).withThreads(byRank(1, 1)));
      }
    }
    return program(steps);
  }

  /** Posts more messages, small and large, than can be sent ahead of their receives. */
  private Program manyMessagesAtOnce() {
    List<Step> steps = new ArrayList<>();
    for (int i = 0; i < 80; i++) {
      steps.add(message(steps, 0, 1, i % 10 == 9 ? 20_000 : i).withDelays(byRank(LATE, LATE)));
    }
    for (int i = 0; i < 10; i++) {
      steps.add(message(steps, 1, 0, 5).withDelays(byRank(LATE, LATE)));
    }
    return program(steps);
  }

  private Program messagesOfAnyRankBesideMonitoredBarriers() {
    List<Step> steps = new ArrayList<>();
    for (int round = 0; round < ROUNDS; round++) {
      steps.add(step(steps, StepKind.MONITORED_BARRIER, 0));
      steps.add(
          step(steps, StepKind.ANY_SOURCE, 2_000)
              .withPeers(0, round % size, 10 + round)
              .withThreads(byRank(1, 0)));
    }
    return program(steps);
  }

  /**
   * Sends one message from a thread that has started a collective, and another from a second
   * thread, which the receiver takes before it reaches that collective.
   */
  private Program messagesOfTwoThreadsBehindCollectives() {
    List<Step> steps = new ArrayList<>();
    steps.add(twin(steps));
    for (StepKind kind : collectives(StepKind::canBeAsync)) {
      steps.add(
          step(steps, StepKind.ANY_SOURCE, 10)
              .withPeers(1, 0, 10 + steps.size())
              .withThreads(byRank(0, 1)));
      steps.add(
          step(steps, kind, 10)
              .inGroup(1)
              .withThreads(byRank(1, 1))
              .withDelays(byRank(LATE, LATE)));
      steps.add(step(steps, StepKind.RING, 10).withThreads(byRank(1, 0)));
    }
    return program(steps);
  }

  /** Creates group 1 from all ranks, in reverse order. */
  private Step twin(List<Step> before) {
    return step(before, StepKind.SPLIT, 0)
        .withCounts(List.of())
        .withMembers(Collections.nCopies(size, 0), 1)
        .withPeers(1, 0, 0);
  }

  /**
   * Uses two groups of the same ranks, in different orders, from two threads, and symmetric memory.
   */
  private Program twoGroupsOnTheSameRanks() {
    List<Step> steps = new ArrayList<>();
    steps.add(twin(steps));
    for (StepKind kind : collectives(kind -> true)) {
      for (int count : new int[] {5, 20_000}) {
        steps.add(step(steps, kind, count));
        steps.add(step(steps, kind, count).inGroup(1).withThreads(byRank(1, 1)));
      }
    }
    steps.add(Step.of(steps.size(), StepKind.CLOSE, size).inGroup(1).withThreads(byRank(1, 1)));
    return program(steps);
  }

  private Program smallAndLargeByTurns() {
    boolean uneven = capabilities.has(Feature.UNEVEN_PARTS);
    List<Step> steps = new ArrayList<>();
    for (StepKind kind : collectives(kind -> kind.parts(size) > 0)) {
      for (int count : new int[] {1, 60_000, 2, 0, 3}) {
        Step step = step(steps, kind, count);
        int parts = step.counts().size();
        boolean even = !uneven && (kind == StepKind.ALL_GATHER || kind == StepKind.REDUCE_SCATTER);
        steps.add(
            parts == 1 || even
                ? step.withCounts(Collections.nCopies(parts, step.count()))
                : step.withCounts(
                    IntStream.range(0, parts)
                        .mapToObj(i -> i % 3 == 1 ? 0 : step.count())
                        .toList()));
      }
    }
    return program(steps);
  }

  /**
   * Starts the collectives that have a root, once with each root, before the first one is awaited.
   */
  private Program allRootsAtOnce() {
    List<Step> steps = new ArrayList<>();
    for (int count : new int[] {7, 20_000}) {
      for (int root = 0; root < size; root++) {
        for (StepKind kind :
            collectives(
                k ->
                    k == StepKind.BROADCAST
                        || k == StepKind.REDUCE
                        || k == StepKind.GATHER
                        || k == StepKind.SCATTER)) {
          steps.add(step(steps, kind, count).withPeers(root, 0, 0).withDelays(byRank(LATE, LATE)));
        }
      }
    }
    return program(steps);
  }
}
