package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.storage.RDDBlockId;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests of stages of which Spark runs only some ranks, which would wait for the others for {@code
 * spark.barrier.sync.timeout}, 365 days.
 */
@Timeout(300)
class RetryTest {
  /** In about every second round that fails at its end, Spark starts one rank alone. */
  private static final int ROUNDS = Integer.getInteger("tutti.spark.retries", 4);

  private static JavaSparkContext spark;

  /** Where rank 2 throws in the first attempt. */
  enum Place {
    BEFORE_JOIN,
    BEFORE,
    IN,
    AFTER,
    END
  }

  /** Adds the rows of all ranks, and fails once. */
  private record FailsOnce(Place place) implements Serializable {
    Iterator<Integer> sum(ProcessGroup group, Iterator<Integer> rows) {
      failAt(Place.BEFORE, group.rank());
      Tensor sum = Tensor.of(rows.next());
      group.allReduce(sum);
      failAt(Place.IN, group.rank());
      group.barrier();
      failAt(Place.AFTER, group.rank());
      return new EndsWith(List.of((int) sum.getLong(0)).iterator(), this, group.rank());
    }

    void failAt(Place at, int rank) {
      if (at == place && rank == 2 && BarrierTaskContext.get().stageAttemptNumber() == 0) {
        throw new IllegalStateException("fails once, " + at);
      }
    }
  }

  private record EndsWith(Iterator<Integer> rows, FailsOnce failure, int rank)
      implements Iterator<Integer> {
    @Override
    public boolean hasNext() {
      if (!rows.hasNext()) {
        failure.failAt(Place.END, rank);
      }
      return rows.hasNext();
    }

    @Override
    public Integer next() {
      return rows.next();
    }
  }

  @BeforeAll
  static void start() {
    spark = TestCluster.start("local[3, 4]", Map.of());
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  @ParameterizedTest
  @EnumSource
  void allRanksRunAgainWhereverOneThrows(Place place) {
    FailsOnce body = new FailsOnce(place);
    for (int round = 0; round < ROUNDS; round++) {
      JavaRDD<Integer> sums = JoinAfter.run(Bodies.partitions(spark, 3), body::sum, body::failAt);
      assertThat(sums.repartition(1).collect()).containsExactly(3, 3, 3);
    }
  }

  @Test
  void aResultThatIsCachedInPartIsRefused() {
    JavaRDD<Integer> sums = sums().persist(StorageLevel.MEMORY_ONLY());
    assertThat(sums.collect()).containsExactly(3, 3, 3);
    loseBlock(sums, 1);
    assertThatThrownBy(sums::collect)
        .isInstanceOf(SparkException.class)
        .hasMessageContaining(
            "rank 1 cannot join: the result of rank 0 is cached, so that rank does not run, but"
                + " that of rank 1 is not. Unpersist RDD "
                + sums.id())
        .hasMessageContaining(".repartition(3).persist(");
    sums.unpersist(true);
    assertThat(sums.collect()).containsExactly(3, 3, 3);
  }

  @Test
  void whatFollowsInTheSameStageIsNotCachedInPartEither() {
    JavaRDD<Integer> doubled = sums().map(sum -> 2 * sum).persist(StorageLevel.DISK_ONLY());
    assertThat(doubled.collect()).containsExactly(6, 6, 6);
    loseBlock(doubled, 0);
    assertThatThrownBy(doubled::collect)
        .isInstanceOf(SparkException.class)
        .hasMessageContaining("rank 0 cannot join: the result of rank 1 is cached")
        .hasMessageContaining("Unpersist RDD " + doubled.id());
  }

  @Test
  void inputMayBeCachedInPartAndResultsAfterAShuffle() {
    JavaRDD<Integer> input = Bodies.partitions(spark, 3).persist(StorageLevel.MEMORY_ONLY());
    assertThat(input.collect()).containsExactly(0, 1, 2);
    loseBlock(input, 2);
    JavaRDD<Integer> sums =
        SparkWorld.mapPartitions(input, new FailsOnce(Place.AFTER)::sum)
            .repartition(3)
            .persist(StorageLevel.MEMORY_ONLY());
    assertThat(sums.collect()).containsExactly(3, 3, 3);
    loseBlock(sums, 0);
    assertThat(sums.collect()).containsExactly(3, 3, 3);
  }

  private static JavaRDD<Integer> sums() {
    return SparkWorld.mapPartitions(
        Bodies.partitions(spark, 3),
        (group, rows) -> {
          Tensor sum = Tensor.of(rows.next());
          group.allReduce(sum);
          return List.of((int) sum.getLong(0)).iterator();
        });
  }

  private static void loseBlock(JavaRDD<?> rdd, int partition) {
    SparkEnv.get().blockManager().removeBlock(new RDDBlockId(rdd.id(), partition), true);
  }
}
