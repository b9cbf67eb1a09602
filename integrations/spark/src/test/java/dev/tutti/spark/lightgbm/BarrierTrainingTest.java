package dev.tutti.spark.lightgbm;

import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_double;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.lightgbm.LightGbmNetwork;
import dev.tutti.lightgbm.NativePointer;
import dev.tutti.spark.TestCluster;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Trains a model on two executors, and compares its predictions with the formula of the labels. */
@Timeout(900)
class BarrierTrainingTest {
  private static final int COLUMNS = 3;

  @Test
  void theModelOfTwoExecutorsPredictsTheFormula() {
    String model;
    try (JavaSparkContext spark = TestCluster.start("local-cluster[2,1,1024]", Map.of())) {
      JavaRDD<double[]> rows =
          spark
              .parallelize(IntStream.range(0, 8000).boxed().toList(), 2)
              .map(BarrierTrainingTest::row);
      model =
          BarrierTraining.train(
              rows, "objective=regression num_threads=1 deterministic=true verbosity=-1", 60);
    }
    assertThat(model).contains("num_class=1", "max_feature_idx=2", "Tree=59", "[num_machines: 2]");
    List<double[]> unseen = IntStream.range(8000, 8500).mapToObj(BarrierTrainingTest::row).toList();
    double[] predicted;
    try (ProcessGroup alone =
            ProcessGroup.init(
                GroupOptions.DEFAULT.withStore(new HashStore()).withRank(0).withSize(1));
        LightGbmNetwork _ = LightGbmNetwork.open(alone)) { // loads the library
      predicted = predict(model, unseen);
    }
    double squares = 0;
    double spread = 0;
    for (int i = 0; i < predicted.length; i++) {
      squares += Math.pow(predicted[i] - unseen.get(i)[0], 2);
      spread += Math.pow(unseen.get(i)[0] - 7.5, 2); // 7.5 is the mean of the formula
    }
    assertThat(1 - squares / spread).as("share of the variance").isGreaterThan(0.99);
  }

  /** Returns 10 x0 + 5 x1 + 5 if x2 is above a half, else - 5, followed by x0 to x2. */
  private static double[] row(int number) {
    SplittableRandom random = new SplittableRandom(number);
    double x0 = random.nextDouble();
    double x1 = random.nextDouble();
    double x2 = random.nextDouble();
    return new double[] {10 * x0 + 5 * x1 + (x2 > 0.5 ? 5 : -5), x0, x1, x2};
  }

  private static double[] predict(String model, List<double[]> rows) {
    SWIGTYPE_p_p_void pointer = lightgbmlib.new_voidpp();
    SWIGTYPE_p_int trees = lightgbmlib.new_intp();
    SWIGTYPE_p_long_long length = lightgbmlib.new_int64_tp();
    SWIGTYPE_p_double results = lightgbmlib.new_doubleArray(rows.size());
    assertThat(lightgbmlib.LGBM_BoosterLoadModelFromString(model, trees, pointer)).isZero();
    SWIGTYPE_p_void booster = lightgbmlib.voidpp_value(pointer);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment features =
          arena.allocate(ValueLayout.JAVA_DOUBLE, (long) rows.size() * COLUMNS);
      for (int i = 0; i < rows.size(); i++) {
        MemorySegment.copy(
            rows.get(i), 1, features, ValueLayout.JAVA_DOUBLE, 8L * i * COLUMNS, COLUMNS);
      }
      int result =
          lightgbmlib.LGBM_BoosterPredictForMat(
              booster,
              NativePointer.of(features),
              1,
              rows.size(),
              COLUMNS,
              1,
              0,
              0,
              -1,
              "",
              length,
              results);
      assertThat(result).as(lightgbmlib.LGBM_GetLastError()).isZero();
      return IntStream.range(0, rows.size())
          .mapToDouble(i -> lightgbmlib.doubleArray_getitem(results, i))
          .toArray();
    } finally {
      lightgbmlib.LGBM_BoosterFree(booster);
      lightgbmlib.delete_doubleArray(results);
      lightgbmlib.delete_int64_tp(length);
      lightgbmlib.delete_intp(trees);
      lightgbmlib.delete_voidpp(pointer);
    }
  }
}
