package dev.tutti.cli.run;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Elastic;
import dev.tutti.checkpoint.ElasticGeneration;
import dev.tutti.checkpoint.ElasticOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A rank that counts steps with the others until the file exists that is its argument, and prints
 * how many ranks there are in each generation.
 */
final class ScaledRank {
  private ScaledRank() {}

  public static void main(String[] arguments) throws Exception {
    System.out.println("PORT " + System.getenv("MASTER_PORT"));
    Path stop = Path.of(arguments[0]);
    Tensor count = Tensor.of(0L);
    Elastic.run(ElasticOptions.DEFAULT, generation -> run(generation, stop, count));
    System.out.println("END");
  }

  private static void run(ElasticGeneration generation, Path stop, Tensor count) {
    long step = generation.restore(Contents.of().copies("count", List.of("count"), List.of(count)));
    System.out.println("RANKS " + generation.group().size());
    Tensor isOver = Tensor.of(0L);
    while (isOver.getLong(0) == 0) {
      isOver.setLong(0, Files.exists(stop) ? 1 : 0);
      generation.group().allReduce(isOver, ReduceOp.MAX);
      count.setLong(0, ++step);
      generation.commit(step);
    }
  }

  /** Waits until the last generation that the rank of a node has seen is of a size. */
  static void awaitSize(CommandProcess node, int size) throws InterruptedException {
    node.await(
        lines ->
            lines.stream()
                .filter(line -> line.matches("\\[rank\\d+] RANKS \\d+"))
                .reduce((_, last) -> last)
                .filter(last -> last.endsWith(" " + size))
                .isPresent());
  }
}
