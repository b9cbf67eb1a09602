package dev.tutti.gloo.algorithm;

import dev.tutti.OpType;
import dev.tutti.Setting;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Determines which algorithm Tutti ranks use over sockets, by operation and number of bytes. The
 * number of bytes is that of a rank's tensor; for an all-gather, that of all parts.
 */
public final class AlgorithmTable {
  private static final Map<OpType, Set<Algorithm>> CHOICES =
      new EnumMap<>(
          Map.of(
              OpType.ALL_REDUCE,
              EnumSet.of(
                  Algorithm.RING,
                  Algorithm.RECURSIVE_DOUBLING,
                  Algorithm.HALVING_DOUBLING,
                  Algorithm.PIPELINED_HALVING_DOUBLING),
              OpType.REDUCE,
              EnumSet.of(Algorithm.RING, Algorithm.BINOMIAL),
              OpType.BROADCAST,
              EnumSet.of(Algorithm.BINOMIAL, Algorithm.CHAIN),
              OpType.ALL_GATHER,
              EnumSet.of(Algorithm.RING, Algorithm.BRUCK),
              OpType.REDUCE_SCATTER,
              EnumSet.of(Algorithm.PAIRWISE, Algorithm.ALL_REDUCE)));

  private static final String CROWDED_ALL_REDUCE =
      "allReduce=recursive-doubling:64K,halving-doubling:4M/512K,"
          + "pipelined-halving-doubling:1024G/512K,ring";

  /** The table that is used unless a setting specifies otherwise. */
  public static final AlgorithmTable DEFAULT =
      new AlgorithmTable(new EnumMap<>(OpType.class))
          .with(
              "allReduce=recursive-doubling:64K,pipelined-halving-doubling:64M/512K,ring;"
                  + "reduce=binomial:256K,ring;"
                  + "broadcast=binomial:1M,chain;"
                  + "allGather=bruck:64K,ring;"
                  + "reduceScatter=pairwise");

  /** The table that corresponds to PyTorch ranks. */
  public static final AlgorithmTable PYTORCH =
      DEFAULT.with(
          "allReduce=ring;reduce=ring;allGather=ring;broadcast=binomial;reduceScatter=all-reduce");

  /**
   * The largest number of bytes for which an algorithm is used.
   *
   * @param maxBytes the limit if the number of ranks is a power of two
   * @param maxBytesElse the limit if it is not
   */
  private record Rule(Algorithm algorithm, long maxBytes, long maxBytesElse) {
    long maxBytes(int ranks) {
      return Integer.bitCount(ranks) == 1 ? maxBytes : maxBytesElse;
    }

    String describe() {
      if (maxBytes == Long.MAX_VALUE) {
        return algorithm.label();
      }
      String limit = algorithm.label() + ":" + size(maxBytes);
      return maxBytesElse == maxBytes ? limit : limit + "/" + size(maxBytesElse);
    }
  }

  private final Map<OpType, List<Rule>> rules;

  private AlgorithmTable(Map<OpType, List<Rule>> rules) {
    this.rules = rules;
  }

  /**
   * Returns this table with different rules for some operations.
   *
   * @param text rules such as {@code allReduce=recursive-doubling:16K,ring;allGather=ring}: for
   *     each operation its algorithms, each but the last with the largest number of bytes it is
   *     used for; {@code 16M/1M} gives one limit for powers of two of ranks and another for all
   *     other numbers
   * @throws IllegalArgumentException if it does not have this form
   */
  public AlgorithmTable with(String text) {
    Map<OpType, List<Rule>> changed = new EnumMap<>(OpType.class);
    changed.putAll(rules);
    for (String part : text.split(";", -1)) {
      if (part.isBlank()) {
        continue;
      }
      String[] sides = part.split("=", 2);
      OpType type = operation(sides[0].strip());
      if (sides.length != 2) {
        throw new IllegalArgumentException("'" + part + "' names no algorithm");
      }
      changed.put(type, rules(type, sides[1]));
    }
    return new AlgorithmTable(changed);
  }

  private static OpType operation(String label) {
    return CHOICES.keySet().stream()
        .filter(type -> type.label().equals(label))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "no algorithm can be chosen for '"
                        + label
                        + "', only for "
                        + CHOICES.keySet().stream()
                            .map(OpType::label)
                            .collect(Collectors.joining(", "))));
  }

  private static List<Rule> rules(OpType type, String list) {
    List<Rule> found = new ArrayList<>();
    List<String> entries = Arrays.asList(list.split(",", -1));
    for (int i = 0; i < entries.size(); i++) {
      String[] sides = entries.get(i).strip().split(":", 2);
      Set<Algorithm> choices = CHOICES.getOrDefault(type, Set.of());
      Algorithm algorithm =
          Algorithm.of(sides[0])
              .filter(choices::contains)
              .orElseThrow(
                  () ->
                      new IllegalArgumentException(
                          "'"
                              + sides[0]
                              + "' is not an algorithm for "
                              + type.label()
                              + "; choose from "
                              + choices.stream()
                                  .map(Algorithm::label)
                                  .collect(Collectors.joining(", "))));
      boolean last = i == entries.size() - 1;
      if (last != (sides.length == 1)) {
        throw new IllegalArgumentException(
            "each algorithm but the last needs a size, as in ring:64K");
      }
      String[] limits = last ? new String[0] : sides[1].split("/", 2);
      long limit = last ? Long.MAX_VALUE : Setting.parseBytes(limits[0]);
      found.add(
          new Rule(algorithm, limit, limits.length < 2 ? limit : Setting.parseBytes(limits[1])));
    }
    return List.copyOf(found);
  }

  /**
   * Returns the table for ranks that outnumber their cores. An all-reduce is then bound by the
   * kernel's copies and by waits for a core. It therefore uses the algorithm with the fewest
   * messages, in pieces if the whole tensor does not stay in the caches. An operation whose
   * algorithm a setting chose is left unchanged.
   */
  public AlgorithmTable whereRanksShareCores() {
    boolean chosen =
        !Objects.equals(rules.get(OpType.ALL_REDUCE), DEFAULT.rules.get(OpType.ALL_REDUCE));
    return chosen ? this : with(CROWDED_ALL_REDUCE);
  }

  /**
   * Chooses an algorithm.
   *
   * @param type an operation in the table
   * @param bytes the number of bytes of its tensor
   */
  public Algorithm choose(OpType type, long bytes, int ranks) {
    List<Rule> list = rules.get(type);
    if (list == null) {
      throw new IllegalArgumentException("no algorithm can be chosen for " + type.label());
    }
    int i = 0;
    while (list.get(i).maxBytes(ranks) < bytes) {
      i++;
    }
    return list.get(i).algorithm;
  }

  /** Returns the table as text that {@link #with} accepts. */
  @Override
  public String toString() {
    return rules.entrySet().stream()
        .map(entry -> entry.getKey().label() + "=" + describe(entry.getValue()))
        .collect(Collectors.joining(";"));
  }

  private static String describe(List<Rule> list) {
    return list.stream().map(Rule::describe).collect(Collectors.joining(","));
  }

  private static String size(long bytes) {
    String units = "BKMG";
    int unit = 0;
    long left = bytes;
    while (left != 0 && left % 1024 == 0 && unit < units.length() - 1) {
      left /= 1024;
      unit++;
    }
    return unit == 0 ? String.valueOf(bytes) : "" + left + units.charAt(unit);
  }
}
