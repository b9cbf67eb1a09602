package dev.tutti.contracts.fuzz;

import java.util.List;
import java.util.stream.IntStream;

/**
 * A list of steps that all ranks take in the same order; each thread of a rank takes its own steps.
 *
 * <p>A program cannot deadlock: consider the first step that is not done. Each thread that takes
 * part in it has reached it, since all earlier steps are done and an asynchronous call is awaited
 * only later in the order. The collectives of a group have one thread on each rank, and so do the
 * messages of a group with the same tag. Calls that need a common order therefore have the order of
 * the steps.
 *
 * <p>On a device, a message waits for the work in its thread's stream, and for earlier messages
 * between the same two ranks in its group, in an order for which threads race. There, all messages
 * of a group therefore have one thread on each rank, or each of them begins with an idle stream.
 *
 * @param seed the seed that generated the program and generates its data
 * @param size the number of ranks
 * @param steps the steps, in order
 */
record Program(long seed, int size, List<Step> steps) {
  Program {
    steps = List.copyOf(steps);
  }

  Groups groups() {
    return Groups.of(this);
  }

  /** Returns the number of threads of each rank. */
  int threads() {
    return 1
        + steps.stream().flatMap(step -> step.threads().stream()).mapToInt(n -> n).max().orElse(0);
  }

  /** Returns whether a rank has messages of a group on several threads. */
  boolean spreadsMessages(int group) {
    return IntStream.range(0, size)
        .anyMatch(
            rank ->
                steps.stream()
                        .filter(step -> step.group() == group && step.kind().isMessage())
                        .map(step -> step.threads().get(rank))
                        .distinct()
                        .count()
                    > 1);
  }

  Program withSteps(List<Step> newSteps) {
    return new Program(seed, size, newSteps);
  }

  /** Parses what {@link #toString} wrote. */
  static Program parse(String text) {
    List<String> lines = text.lines().map(String::strip).filter(l -> !l.isEmpty()).toList();
    String[] head = lines.get(0).split("[ =]", -1);
    int size = Integer.parseInt(head[4]);
    return new Program(
        Long.parseLong(head[2]),
        size,
        lines.stream().skip(1).map(line -> Step.parse(line, size)).toList());
  }

  /** Returns the program as text that {@link #parse} can read. */
  @Override
  public String toString() {
    StringBuilder text =
        new StringBuilder("program seed=").append(seed).append(" size=").append(size).append('\n');
    steps.forEach(step -> text.append(step).append('\n'));
    return text.toString();
  }
}
