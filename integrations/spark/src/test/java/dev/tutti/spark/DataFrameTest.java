package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

/** Sums the rows of a data frame by column over all ranks. */
class DataFrameTest {
  @Test
  void columnsAreSummedOverAllRanks() {
    try (JavaSparkContext spark = TestCluster.start("local[2]", Map.of())) {
      SparkSession session = SparkSession.builder().sparkContext(spark.sc()).getOrCreate();
      Dataset<Row> table =
          session.range(0, 1000, 1, 2).selectExpr("cast(id as double) a", "id * 0.5D b", "1D c");
      List<double[]> sums =
          SparkWorld.mapPartitions(
                  table.toJavaRDD(),
                  (group, rows) -> {
                    RowBatches<Row> batches =
                        RowBatches.of(
                            rows,
                            DType.FLOAT64,
                            3,
                            64,
                            (row, target) -> {
                              for (int c = 0; c < 3; c++) {
                                target.setAtIndex(ValueLayout.JAVA_DOUBLE, c, row.getDouble(c));
                              }
                            });
                    Tensor sum = Tensor.of(0., 0, 0);
                    while (batches.hasNext()) {
                      Tensor batch = batches.next();
                      for (long i = 0; i < batch.numel(); i++) {
                        sum.setDouble(i % 3, sum.getDouble(i % 3) + batch.getDouble(i));
                      }
                    }
                    group.allReduce(sum);
                    return List.of(sum.toDoubleArray()).iterator();
                  })
              .collect();
      assertThat(sums).hasSize(2);
      assertThat(sums.get(0)).containsExactly(499_500, 249_750, 1000);
      assertThat(sums.get(1)).containsExactly(499_500, 249_750, 1000);
    }
  }
}
