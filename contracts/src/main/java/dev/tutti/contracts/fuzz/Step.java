package dev.tutti.contracts.fuzz;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A step of a {@link Program}, in which all members of a group take part, or only the two ranks of
 * a message.
 *
 * @param id the number that names the step, even after others are dropped, and seeds its data
 * @param kind what the step does
 * @param group the number of the group; group 0 has all ranks
 * @param threads the thread that takes part, by rank of the world
 * @param delays by rank of the world, {@link #SYNC}, or the number of further steps of the thread
 *     after which it awaits an asynchronous call
 * @param dtype the element type
 * @param op the operator of a reduction
 * @param counts the numbers of elements: one, or one for each tensor or rank, or for an all-to-all
 *     one for each pair of ranks, by sender
 * @param root the root, or the sending or receiving rank, in the group
 * @param peer the receiving rank of a message
 * @param tag the tag of messages
 * @param members for a SUBGROUP its ranks in the parent, and for a SPLIT the color of each rank
 * @param child the number of the first group that is created
 * @param views whether tensors are views into larger ones
 */
record Step(
    int id,
    StepKind kind,
    int group,
    List<Integer> threads,
    List<Integer> delays,
    DType dtype,
    ReduceOp.Kind op,
    List<Integer> counts,
    int root,
    int peer,
    int tag,
    List<Integer> members,
    int child,
    boolean views) {
  /** The delay that stands for a call that returns when it is done. */
  static final int SYNC = -1;

  Step {
    threads = List.copyOf(threads);
    delays = List.copyOf(delays);
    counts = List.copyOf(counts);
    members = List.copyOf(members);
  }

  /**
   * Creates a synchronous step of all ranks on their first threads, for programs written by hand.
   */
  static Step of(int id, StepKind kind, int size, int... counts) {
    return new Step(
        id,
        kind,
        0,
        copies(size, 0),
        copies(size, SYNC),
        DType.FLOAT32,
        ReduceOp.Kind.SUM,
        Arrays.stream(counts).boxed().toList(),
        0,
        0,
        0,
        List.of(),
        0,
        false);
  }

  private static List<Integer> copies(int count, int value) {
    return java.util.Collections.nCopies(count, value);
  }

  boolean isAsync(int rank) {
    return delays.get(rank) != SYNC;
  }

  int count() {
    return counts.get(0);
  }

  Step inGroup(int newGroup) {
    return new Step(
        id, kind, newGroup, threads, delays, dtype, op, counts, root, peer, tag, members, child,
        views);
  }

  Step withThreads(List<Integer> newThreads) {
    return new Step(
        id,
        kind,
        group,
        newThreads,
        delays,
        dtype,
        op,
        counts,
        root,
        peer,
        tag,
        members,
        child,
        views);
  }

  Step withDelays(List<Integer> newDelays) {
    return new Step(
        id, kind, group, threads, newDelays, dtype, op, counts, root, peer, tag, members, child,
        views);
  }

  Step withData(DType newDtype, ReduceOp.Kind newOp) {
    return new Step(
        id, kind, group, threads, delays, newDtype, newOp, counts, root, peer, tag, members, child,
        views);
  }

  Step withCounts(List<Integer> newCounts) {
    return new Step(
        id, kind, group, threads, delays, dtype, op, newCounts, root, peer, tag, members, child,
        views);
  }

  Step withPeers(int newRoot, int newPeer, int newTag) {
    return new Step(
        id, kind, group, threads, delays, dtype, op, counts, newRoot, newPeer, newTag, members,
        child, views);
  }

  Step withMembers(List<Integer> newMembers, int newChild) {
    return new Step(
        id,
        kind,
        group,
        threads,
        delays,
        dtype,
        op,
        counts,
        root,
        peer,
        tag,
        newMembers,
        newChild,
        views);
  }

  Step withViews(boolean newViews) {
    return new Step(
        id, kind, group, threads, delays, dtype, op, counts, root, peer, tag, members, child,
        newViews);
  }

  /** Parses what {@link #toString} wrote, for a program with the given number of ranks. */
  static Step parse(String line, int size) {
    String[] words = line.trim().split("\\s+");
    Map<String, String> fields = new HashMap<>();
    for (String word : words) {
      int at = word.indexOf('=');
      if (at > 0) {
        fields.put(word.substring(0, at), word.substring(at + 1));
      }
    }
    Function<String, Integer> number = name -> Integer.parseInt(fields.getOrDefault(name, "0"));
    return new Step(
        Integer.parseInt(words[0]),
        StepKind.valueOf(words[1]),
        number.apply("group"),
        fields.containsKey("threads") ? numbers(fields.get("threads")) : copies(size, 0),
        fields.containsKey("delays") ? numbers(fields.get("delays")) : copies(size, SYNC),
        DType.ofLabel(fields.getOrDefault("dtype", "float32")),
        ReduceOp.Kind.valueOf(fields.getOrDefault("op", "SUM")),
        numbers(fields.get("counts")),
        number.apply("root"),
        number.apply("peer"),
        number.apply("tag"),
        numbers(fields.get("members")),
        number.apply("child"),
        Boolean.parseBoolean(fields.getOrDefault("views", "false")));
  }

  private static List<Integer> numbers(@Nullable String text) {
    List<Integer> numbers = new ArrayList<>();
    if (text != null && !text.isEmpty()) {
      for (String part : text.split(",", -1)) {
        numbers.add(Integer.parseInt(part));
      }
    }
    return numbers;
  }

  /** Returns the step as one line that {@link #parse} can read. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder().append(id).append(' ').append(kind);
    append(text, "group", group);
    append(text, "threads", threads.stream().allMatch(n -> n == 0) ? List.of() : threads);
    append(text, "delays", delays.stream().allMatch(n -> n == SYNC) ? List.of() : delays);
    text.append(dtype == DType.FLOAT32 ? "" : " dtype=" + dtype.label());
    text.append(op == ReduceOp.Kind.SUM ? "" : " op=" + op);
    append(text, "counts", counts);
    append(text, "root", root);
    append(text, "peer", peer);
    append(text, "tag", tag);
    append(text, "members", members);
    append(text, "child", child);
    return text.append(views ? " views=true" : "").toString();
  }

  private static void append(StringBuilder text, String name, int value) {
    if (value != 0) {
      text.append(' ').append(name).append('=').append(value);
    }
  }

  private static void append(StringBuilder text, String name, List<Integer> values) {
    if (!values.isEmpty()) {
      text.append(' ').append(name).append('=');
      text.append(String.join(",", values.stream().map(String::valueOf).toList()));
    }
  }
}
