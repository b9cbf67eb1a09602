package dev.tutti.spark.sgd;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/** Measures steps a second of both ways, in turns; {@code benchmarks/spark/run} starts it. */
final class SgdBenchmark {
  private static final int ROWS = 16;
  private static final int BATCH = 4;

  private SgdBenchmark() {}

  /**
   * Measures.
   *
   * @param args master, ranks, features, steps of a run, rounds
   */
  public static void main(String[] args) {
    int ranks = Integer.parseInt(args[1]);
    int columns = Integer.parseInt(args[2]);
    int steps = Integer.parseInt(args[3]);
    int rounds = Integer.parseInt(args[4]);
    SparkConf conf = new SparkConf().setMaster(args[0]).setAppName("sgd");
    try (JavaSparkContext spark = new JavaSparkContext(conf)) {
      spark.setLogLevel("ERROR");
      List<Long> seeds = IntStream.range(0, ranks).mapToObj(i -> (long) i).toList();
      JavaRDD<LogisticBlock> blocks =
          spark
              .parallelize(seeds, ranks)
              .map(seed -> LogisticBlock.generate(seed, ROWS, columns))
              .cache();
      blocks.count();
      Sgd sgd = new Sgd(columns, BATCH, steps, 0.1f);
      double difference = difference(sgd.withTutti(blocks), sgd.withTreeAggregate(spark, blocks));
      List<Double> tutti = new ArrayList<>();
      List<Double> tree = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        tutti.add(steps / seconds(() -> sgd.withTutti(blocks)));
        tree.add(steps / seconds(() -> sgd.withTreeAggregate(spark, blocks)));
      }
      System.out.printf(
          Locale.ROOT,
          "%s, %d ranks, %d features, %d of %d rows a rank and step, %d steps, %d rounds;"
              + " greatest difference of a weight %g%n",
          args[0],
          ranks,
          columns,
          BATCH,
          ROWS,
          steps,
          rounds,
          difference);
      print("Tutti", tutti);
      print("treeAggregate", tree);
      System.out.printf(Locale.ROOT, "ratio of medians %.1f%n", median(tutti) / median(tree));
    }
  }

  private static double seconds(Runnable run) {
    long start = System.nanoTime();
    run.run();
    return (System.nanoTime() - start) / 1e9;
  }

  private static double difference(float[] one, float[] other) {
    return IntStream.range(0, one.length)
        .mapToDouble(j -> Math.abs(one[j] - other[j]))
        .max()
        .orElse(0);
  }

  private static void print(String name, List<Double> rates) {
    double[] sorted = rates.stream().mapToDouble(d -> d).sorted().toArray();
    System.out.printf(
        Locale.ROOT,
        "%-14s steps/s: median %.1f, from %.1f to %.1f%n",
        name,
        median(rates),
        sorted[0],
        sorted[sorted.length - 1]);
  }

  private static double median(List<Double> rates) {
    double[] sorted = rates.stream().mapToDouble(d -> d).sorted().toArray();
    return Arrays.stream(sorted).skip(sorted.length / 2).findFirst().orElseThrow();
  }
}
