package dev.tutti.spark.sgd;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;

/** Tests that both ways give the same model, and that it has learned something. */
class SgdTest {
  @Test
  void groupAndTreeAggregateGiveTheSameModel() {
    SparkConf conf =
        new SparkConf(false)
            .setMaster("local[2]")
            .setAppName("sgd")
            .set("spark.ui.enabled", "false")
            .set("spark.driver.host", "127.0.0.1");
    try (JavaSparkContext spark = new JavaSparkContext(conf)) {
      JavaRDD<LogisticBlock> blocks =
          spark
              .parallelize(List.of(1L, 2L), 2)
              .map(seed -> LogisticBlock.generate(seed, 64, 10))
              .cache();
      Sgd sgd = new Sgd(10, 8, 200, 0.5f);
      float[] model = sgd.withTutti(blocks);
      // Two gradients can be added in only one order.
      assertThat(sgd.withTreeAggregate(spark, blocks)).containsExactly(model);
      int right = blocks.map(block -> block.countRight(model)).reduce(Integer::sum);
      assertThat(right).isBetween(116, 128);
    }
  }
}
