package dev.tutti.spark;

import dev.tutti.Tensor;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;

/** The compiled example of the package; {@link LocalWorldTest} runs similar code. */
final class SparkSnippets {
  private SparkSnippets() {}

  static List<Double> sums(JavaRDD<Double> numbers) {
    // @start region="world"
    JavaRDD<Double> sums = // the sum of all numbers, once per partition
        SparkWorld.mapPartitions(
            numbers,
            (group, rows) -> {
              double own = 0;
              while (rows.hasNext()) {
                own += rows.next();
              }
              Tensor sum = Tensor.of(own);
              group.allReduce(sum);
              return List.of(sum.getDouble(0)).iterator();
            });
    // @end
    return sums.collect();
  }
}
