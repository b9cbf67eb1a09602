package dev.tutti.spark.sgd;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.spark.SparkWorld;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;

/**
 * Trains a logistic regression by stochastic gradient descent in two ways with the same result: a
 * group of ranks that sum their gradients, and a {@code treeAggregate} job for each step.
 *
 * @param columns the number of features in a row
 * @param batch the number of rows of each partition in a step
 * @param steps the number of steps
 * @param rate the factor by which a gradient moves the weights
 */
record Sgd(int columns, int batch, int steps, float rate) implements Serializable {
  /** Runs one stage: the weights stay in place, and all ranks have the same weights. */
  float[] withTutti(JavaRDD<LogisticBlock> blocks) {
    return SparkWorld.mapPartitions(blocks, this::trainRank).repartition(1).collect().getFirst();
  }

  private Iterator<float[]> trainRank(ProcessGroup group, Iterator<LogisticBlock> rows) {
    LogisticBlock block = rows.next();
    float[] weights = new float[columns];
    float[] gradient = new float[columns];
    Tensor sum = Tensor.allocate(DType.FLOAT32, columns);
    for (int step = 0; step < steps; step++) {
      Arrays.fill(gradient, 0);
      block.addGradient(weights, step, batch, gradient);
      sum.copyFrom(gradient);
      group.allReduce(sum);
      sum.copyTo(gradient);
      move(weights, gradient, batch * group.size());
    }
    return group.rank() == 0 ? List.of(weights).iterator() : List.<float[]>of().iterator();
  }

  /** Runs a job for each step: the weights go to the executors, and the gradient comes back. */
  float[] withTreeAggregate(JavaSparkContext spark, JavaRDD<LogisticBlock> blocks) {
    float[] weights = new float[columns];
    int ranks = blocks.getNumPartitions();
    for (int step = 0; step < steps; step++) {
      int number = step;
      Broadcast<float[]> current = spark.broadcast(weights);
      // An empty array stands for zeros, which Spark would otherwise send with each task.
      float[] gradient =
          blocks.treeAggregate(
              new float[0],
              (sum, block) -> {
                float[] target = sum.length == 0 ? new float[columns] : sum;
                block.addGradient(current.value(), number, batch, target);
                return target;
              },
              Sgd::sum);
      current.destroy();
      move(weights, gradient, batch * ranks);
    }
    return weights;
  }

  private static float[] sum(float[] one, float[] other) {
    if (one.length == 0 || other.length == 0) {
      return one.length == 0 ? other : one;
    }
    for (int j = 0; j < one.length; j++) {
      one[j] += other[j];
    }
    return one;
  }

  private void move(float[] weights, float[] gradient, int rows) {
    float factor = rate / rows;
    for (int j = 0; j < columns; j++) {
      weights[j] -= factor * gradient[j];
    }
  }
}
