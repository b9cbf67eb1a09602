package dev.tutti.testing.fuzz;

import java.util.List;
import java.util.stream.IntStream;

/**
 * A list of steps that all ranks take in the same order, each thread of a rank those of its own.
 *
 * <p>A program cannot deadlock: of the steps that are not done, each thread that takes part in the
 * first came to it, as all earlier ones are done, and an asynchronous call is awaited only later in
 * the order. Collectives of a group have one thread on each rank, and so have the messages of a
 * group with one tag; so calls that must have a common order have that of the steps.
 *
 * <p>On a device a message waits for what is in the stream of its thread, and for the messages
 * before it of the same two ranks in its group, in an order that threads race for. So there all
 * messages of a group have one thread on each rank, or each of them begins with an idle stream.
 *
 * @param seed made the program and makes its data
 * @param size number of ranks
 * @param steps in order
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

  /** Tells whether a rank has messages of a group on several threads. */
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

  /** Reads what {@link #toString} wrote. */
  static Program parse(String text) {
    List<String> lines = text.lines().map(String::strip).filter(l -> !l.isEmpty()).toList();
    String[] head = lines.get(0).split("[ =]", -1);
    int size = Integer.parseInt(head[4]);
    return new Program(
        Long.parseLong(head[2]),
        size,
        lines.stream().skip(1).map(line -> Step.parse(line, size)).toList());
  }

  /** Returns the program as text that {@link #parse} reads. */
  @Override
  public String toString() {
    StringBuilder text =
        new StringBuilder("program seed=").append(seed).append(" size=").append(size).append('\n');
    steps.forEach(step -> text.append(step).append('\n'));
    return text.toString();
  }
}
