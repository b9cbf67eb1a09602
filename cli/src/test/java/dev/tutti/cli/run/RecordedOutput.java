package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.rank.RankOutput;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** The output of ranks, kept as "rank:channel:text"; a test can wait for it. */
final class RecordedOutput implements RankOutput {
  private final List<String> lines = new ArrayList<>();

  @Override
  public synchronized void lines(int rank, Channel channel, List<byte[]> together) {
    together.forEach(line -> lines.add(rank + ":" + channel + ":" + new String(line, UTF_8)));
    notifyAll();
  }

  synchronized List<String> lines() {
    return List.copyOf(lines);
  }

  /** Returns what a rank wrote to standard output. */
  List<String> out(int rank) {
    String prefix = rank + ":OUT:";
    return lines().stream()
        .filter(line -> line.startsWith(prefix))
        .map(line -> line.substring(prefix.length()))
        .toList();
  }

  /** Waits until the lines meet a condition. */
  synchronized void await(Predicate<List<String>> condition) throws InterruptedException {
    long deadline = System.nanoTime() + Duration.ofMinutes(4).toNanos();
    while (!condition.test(lines)) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        throw new AssertionError("not seen in time; got " + lines);
      }
      wait(left);
    }
  }
}
