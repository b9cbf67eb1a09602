package dev.tutti.cli.run;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Elastic;
import dev.tutti.checkpoint.ElasticGeneration;
import dev.tutti.checkpoint.ElasticOptions;
import java.util.List;

/**
 * A rank that counts steps with the others. The one that starts as rank 1 ends in the middle of
 * step 3; the others count until another process has been with them for some steps.
 */
final class ElasticRank {
  private static final int SIZE = 3;
  private static final int STEPS = 5;

  private final Tensor count = Tensor.of(0L);
  private String end = "";

  private ElasticRank() {}

  public static void main(String[] arguments) throws Exception {
    ElasticRank rank = new ElasticRank();
    Elastic.run(ElasticOptions.DEFAULT, rank::run);
    System.out.println(rank.end);
  }

  private void run(ElasticGeneration generation) {
    Contents state = Contents.of().copies("count", List.of("count"), List.of(count));
    long first = generation.restore(state);
    boolean isFirst = generation.group().name().equals("0");
    boolean isWhole = generation.group().size() == SIZE;
    for (long step = first; isFirst || !isWhole || step < first + STEPS; step++) {
      Tensor one = Tensor.of(generation.group().rank() == 0 ? 1L : 0L);
      generation.group().allReduce(one);
      if (step == 3 && "1".equals(System.getenv("RANK"))) {
        Runtime.getRuntime().halt(3);
      }
      count.setLong(0, count.getLong(0) + one.getLong(0));
      generation.commit(step + 1);
    }
    boolean isRight = count.getLong(0) == first + STEPS;
    end = "END size " + generation.group().size() + " right " + isRight;
  }
}
