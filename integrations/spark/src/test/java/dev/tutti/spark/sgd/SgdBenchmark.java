package dev.tutti.spark.sgd;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/** Measures the steps per second of both ways, in turns; {@code benchmarks/spark/run} starts it. */
final class SgdBenchmark {
  private static final int ROWS = 16;
  private static final int BATCH = 4;

  private SgdBenchmark() {}

  /**
   * Runs the measurement.
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
      Sgd nothing = new Sgd(columns, BATCH, 0, 0);
      List<Double> setUp = new ArrayList<>();
      List<Double> tutti = new ArrayList<>();
      List<Double> loop = new ArrayList<>();
      List<Double> tree = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        double empty = seconds(() -> nothing.withTutti(blocks));
        double whole = seconds(() -> sgd.withTutti(blocks));
        setUp.add(empty);
        tutti.add(steps / whole);
        loop.add(steps / (whole - empty));
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
      print("Tutti, whole run, steps/s", tutti);
      print("Tutti, without set-up, steps/s", loop);
      print("Tutti, run of no steps, s", setUp);
      print("treeAggregate, steps/s", tree);
      System.out.printf(
          Locale.ROOT,
          "ratio of medians %.1f, without set-up %.1f%n",
          median(tutti) / median(tree),
          median(loop) / median(tree));
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
        "%-30s median %.2f, from %.2f to %.2f%n",
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
