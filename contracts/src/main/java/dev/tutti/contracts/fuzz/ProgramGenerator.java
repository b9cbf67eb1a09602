package dev.tutti.contracts.fuzz;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A generator of random programs from what a backend can do; the same seed gives the same program.
 */
final class ProgramGenerator {
  private static final int MOST_STEPS = 40;
  private static final int MOST_GROUPS = 5;
  private static final int MOST_THREADS = 3;
  private static final int TAGS = 3;
  private static final int FIRST_OWN_TAG = 100;

  /* The numbers of bytes at which transports change how they send. */
  private static final int[] LIMITS = {4096, 16_384, 65_536};

  private final Capabilities capabilities;
  private final Random random;
  private final long seed;
  private final int size;
  private final List<StepKind> kinds;
  private final List<Step> steps = new ArrayList<>();
  private final Map<Integer, Integer> groupSizes = new HashMap<>();
  private final Map<Integer, Integer> parents = new HashMap<>();
  private final Set<Integer> closed = new HashSet<>();
  private final Map<String, List<Integer>> strands = new HashMap<>();
  private final int threads;
  private final double asyncShare;
  private final boolean messagesHaveOneThread;

  /**
   * Prepares a program.
   *
   * @param onHost whether tensors are in host memory, which object collectives need
   * @param sizes the numbers of ranks to choose from
   */
  ProgramGenerator(Capabilities capabilities, boolean onHost, int[] sizes, long seed) {
    this.capabilities = capabilities;
    this.seed = seed;
    this.random = new Random(ProgramReference.mix(seed));
    this.size = sizes[random.nextInt(sizes.length)];
    this.threads = 1 + random.nextInt(MOST_THREADS);
    this.asyncShare = List.of(0.0, 0.3, 0.7).get(random.nextInt(3));
    this.kinds =
        Stream.of(StepKind.values()).filter(kind -> kind.isPossible(capabilities, onHost)).toList();
    this.messagesHaveOneThread = !onHost && random.nextBoolean();
    groupSizes.put(0, size);
  }

  /** Generates the program. */
  Program generate() {
    int count = (3 + random.nextInt(MOST_STEPS - 2)) * (chance(0.1) ? 5 : 1);
    while (steps.size() < count) {
      if (chance(0.12) && kinds.contains(StepKind.MESSAGE)) {
        addRelay();
      } else {
        add(pick(kinds));
      }
    }
    return new Program(seed, size, steps);
  }

  private boolean chance(double share) {
    return random.nextDouble() < share;
  }

  private <T> T pick(List<T> choices) {
    return choices.get(random.nextInt(choices.size()));
  }

  private List<Integer> openGroups() {
    return groupSizes.keySet().stream().filter(id -> !closed.contains(id)).sorted().toList();
  }

  private int membersOf(int group) {
    return Objects.requireNonNull(groupSizes.get(group));
  }

  private void add(StepKind kind) {
    int group = chance(0.5) ? 0 : pick(openGroups());
    int members = membersOf(group);
    switch (kind) {
      case SPLIT, SUBGROUP -> {
        if (groupSizes.size() < MOST_GROUPS && chance(0.5)) {
          addGroups(kind, group, members);
        }
      }
      case CLOSE -> {
        List<Integer> leaves = new ArrayList<>(openGroups());
        leaves.removeIf(id -> id == 0 || parents.containsValue(id));
        if (!leaves.isEmpty()) {
          int leaf = pick(leaves);
          steps.add(step(kind, leaf));
          closed.add(leaf);
        }
      }
      case MESSAGE -> {
        if (members > 1) {
          int from = random.nextInt(members);
          addMessage(group, from, (from + 1 + random.nextInt(members - 1)) % members, tag());
        }
      }
      case RING, BATCH_OF_MESSAGES -> steps.add(data(kind, group).withPeers(0, 0, tag()));
      case ANY_SOURCE -> {
        int root = random.nextInt(members);
        int byName = random.nextInt(members);
        steps.add(data(kind, group).withPeers(root, byName, FIRST_OWN_TAG + steps.size()));
      }
      default ->
          steps.add(data(kind, group).withPeers(random.nextInt(members), 0, random.nextInt(4)));
    }
    fixLanes();
  }

  /** Assigns the last step to the threads that such calls use in its group. */
  private void fixLanes() {
    if (!steps.isEmpty()) {
      Step last = steps.remove(steps.size() - 1);
      String messages = messagesHaveOneThread ? " messages" : " tag " + last.tag();
      boolean aside = last.kind().isMessage() && capabilities.has(Feature.TAGS);
      String strand = last.group() + (aside ? messages : "");
      steps.add(last.withThreads(strands.computeIfAbsent(strand, _ -> randomThreads())));
    }
  }

  private List<Integer> randomThreads() {
    return IntStream.range(0, size).mapToObj(_ -> random.nextInt(threads)).toList();
  }

  private int tag() {
    return capabilities.has(Feature.TAGS) ? random.nextInt(TAGS) : 0;
  }

  private void addMessage(int group, int from, int to, int tag) {
    steps.add(data(StepKind.MESSAGE, group).withPeers(from, to, tag));
    fixLanes();
  }

  /** Passes a message on from rank to rank, usually while an asynchronous collective runs. */
  private void addRelay() {
    int group = pick(openGroups());
    int members = membersOf(group);
    if (chance(0.7)) {
      add(pick(kinds.stream().filter(kind -> kind.canBeAsync() && !kind.isMessage()).toList()));
      Step last = steps.remove(steps.size() - 1);
      steps.add(last.withDelays(delays(last.kind(), 0.9)));
    }
    int tag = tag();
    int first = random.nextInt(members);
    for (int hop = 0; hop + 1 < members; hop++) {
      addMessage(group, (first + hop) % members, (first + hop + 1) % members, tag);
    }
  }

  private void addGroups(StepKind kind, int group, int members) {
    int child = groupSizes.keySet().stream().mapToInt(id -> id).max().orElse(0) + 1;
    List<Integer> list = new ArrayList<>();
    if (kind == StepKind.SUBGROUP) {
      list.addAll(IntStream.range(0, members).boxed().toList());
      Collections.shuffle(list, random);
      list = list.subList(0, 1 + random.nextInt(members));
      groupSizes.put(child, list.size());
      parents.put(child, group);
    } else {
      int colors = 1 + random.nextInt(2);
      for (int rank = 0; rank < members; rank++) {
        list.add(chance(0.1) ? -1 : random.nextInt(colors));
      }
      for (int color : new HashSet<>(list)) {
        if (color >= 0) {
          groupSizes.put(child + color, Collections.frequency(list, color));
          parents.put(child + color, group);
        }
      }
    }
    steps.add(step(kind, group).withMembers(list, child).withPeers(random.nextInt(2), 0, 0));
    fixLanes();
  }

  private Step step(StepKind kind, int group) {
    return Step.of(steps.size(), kind, size).inGroup(group);
  }

  /** Creates a step with a type, sizes and delays, and with an operator if it reduces. */
  private Step data(StepKind kind, int group) {
    List<DType> types =
        Stream.of(DType.values())
            .filter(
                type ->
                    kind.isReduction()
                        ? isReducible(type, kind)
                        : capabilities.movable().contains(type))
            .toList();
    DType dtype = pick(types);
    List<ReduceOp.Kind> ops =
        Stream.of(ReduceOp.Kind.values())
            .filter(op -> capabilities.canReduce(dtype, ProgramReference.op(op, 0)))
            .toList();
    boolean sum = !kind.isReduction() || kind == StepKind.ALL_REDUCE_SPARSE;
    return step(kind, group)
        .withData(dtype, sum ? ReduceOp.Kind.SUM : pick(ops))
        .withCounts(counts(kind, membersOf(group), dtype))
        .withDelays(delays(kind, asyncShare))
        .withViews(chance(0.6));
  }

  private boolean isReducible(DType type, StepKind kind) {
    return capabilities.canReduce(type, ReduceOp.SUM)
        && capabilities.movable().contains(type)
        && (kind != StepKind.ALL_REDUCE_SPARSE || !(type == DType.BOOL || type.isComplex()));
  }

  private List<Integer> delays(StepKind kind, double share) {
    boolean allAlike = chance(0.5);
    boolean alike = chance(share);
    return IntStream.range(0, size)
        .mapToObj(
            _ ->
                kind.canBeAsync() && (allAlike ? alike : chance(share))
                    ? random.nextInt(5) * random.nextInt(3)
                    : Step.SYNC)
        .toList();
  }

  private List<Integer> counts(StepKind kind, int members, DType dtype) {
    int parts =
        switch (kind) {
          case ALL_REDUCE_COALESCED, ALL_GATHER_COALESCED, REDUCE_SCATTER_COALESCED ->
              1 + random.nextInt(4);
          default -> kind.parts(members);
        };
    boolean even =
        switch (kind) {
          case ALL_GATHER, REDUCE_SCATTER -> !capabilities.has(Feature.UNEVEN_PARTS) || chance(0.5);
          case ALL_TO_ALL, ALL_TO_ALL_SINGLE -> chance(0.4);
          default -> false;
        };
    int limit = kind == StepKind.ALL_REDUCE_SPARSE ? 20 : Integer.MAX_VALUE;
    int alike = count(dtype);
    Integer[] counts = new Integer[parts];
    Arrays.setAll(
        counts, _ -> Math.min(limit, (even ? alike : count(dtype)) / Math.max(1, parts / 2)));
    return List.of(counts);
  }

  /**
   * Returns a number of elements: usually small, sometimes near the limits of transports, rarely
   * large.
   */
  private int count(DType dtype) {
    int die = random.nextInt(1000);
    if (die < 450) {
      return random.nextInt(20);
    }
    if (die < 750) {
      return random.nextInt(2_000);
    }
    if (die < 950) {
      return LIMITS[random.nextInt(LIMITS.length)] / dtype.byteSize() + random.nextInt(3) - 1;
    }
    if (die < 997) {
      return random.nextInt(120_000);
    }
    return 1_000_000;
  }
}
