package dev.tutti.spark.lightgbm;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.ProcessGroup;
import dev.tutti.lightgbm.LightGbmNetwork;
import dev.tutti.lightgbm.NativePointer;
import dev.tutti.spark.SparkWorld;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;

/**
 * Trains a LightGBM model in the tasks of a barrier stage: each task uses the rows of its
 * partition, over Tutti's network. Executors run one task at a time, as each process holds one
 * rank.
 */
final class BarrierTraining {
  private static final int FLOAT32 = 0;
  private static final int FLOAT64 = 1;

  private BarrierTraining() {}

  /**
   * Returns the text of the model.
   *
   * @param rows the labels, each followed by its features; no partition is empty
   * @param parameters the parameters of LightGBM, except those of its network
   * @param rounds the number of trees
   */
  static String train(JavaRDD<double[]> rows, String parameters, int rounds) {
    List<String> models =
        SparkWorld.mapPartitions(
                rows, (group, own) -> trainRank(group, own, parameters, rounds).iterator())
            .repartition(1) // so that Spark restarts a stage that lost an executor
            .collect();
    return models.getFirst();
  }

  private static List<String> trainRank(
      ProcessGroup group, Iterator<double[]> rows, String parameters, int rounds) {
    List<double[]> own = new ArrayList<>();
    rows.forEachRemaining(own::add);
    String all = parameters + " tree_learner=data pre_partition=true num_machines=" + group.size();
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      SWIGTYPE_p_void data = data(network, own, all);
      SWIGTYPE_p_void booster = null;
      try {
        SWIGTYPE_p_p_void pointer = lightgbmlib.new_voidpp();
        network.call(() -> lightgbmlib.LGBM_BoosterCreate(data, all, pointer));
        booster = lightgbmlib.voidpp_value(pointer);
        lightgbmlib.delete_voidpp(pointer);
        train(network, booster, rounds);
        return group.rank() == 0 ? List.of(text(booster)) : List.of(); // the same on all ranks
      } finally {
        if (booster != null) {
          lightgbmlib.LGBM_BoosterFree(booster);
        }
        lightgbmlib.LGBM_DatasetFree(data);
      }
    }
  }

  private static void train(LightGbmNetwork network, SWIGTYPE_p_void booster, int rounds) {
    SWIGTYPE_p_int finished = lightgbmlib.new_intp();
    try {
      for (int round = 0; round < rounds; round++) {
        network.call(() -> lightgbmlib.LGBM_BoosterUpdateOneIter(booster, finished));
      }
    } finally {
      lightgbmlib.delete_intp(finished);
    }
  }

  private static SWIGTYPE_p_void data(
      LightGbmNetwork network, List<double[]> rows, String parameters) {
    int columns = rows.getFirst().length - 1;
    SWIGTYPE_p_p_void pointer = lightgbmlib.new_voidpp();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment features =
          arena.allocate(ValueLayout.JAVA_DOUBLE, (long) rows.size() * columns);
      MemorySegment labels = arena.allocate(ValueLayout.JAVA_FLOAT, rows.size());
      for (int i = 0; i < rows.size(); i++) {
        labels.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) rows.get(i)[0]);
        MemorySegment.copy(
            rows.get(i), 1, features, ValueLayout.JAVA_DOUBLE, 8L * i * columns, columns);
      }
      network.call(
          () ->
              lightgbmlib.LGBM_DatasetCreateFromMat(
                  NativePointer.of(features),
                  FLOAT64,
                  rows.size(),
                  columns,
                  1,
                  parameters,
                  null,
                  pointer));
      SWIGTYPE_p_void data = lightgbmlib.voidpp_value(pointer);
      network.call(
          () ->
              lightgbmlib.LGBM_DatasetSetField(
                  data, "label", NativePointer.of(labels), rows.size(), FLOAT32));
      return data;
    } finally {
      lightgbmlib.delete_voidpp(pointer);
    }
  }

  private static String text(SWIGTYPE_p_void booster) {
    SWIGTYPE_p_long_long length = lightgbmlib.new_int64_tp();
    try {
      return lightgbmlib.LGBM_BoosterSaveModelToStringSWIG(booster, 0, -1, 0, 1 << 20, length);
    } finally {
      lightgbmlib.delete_int64_tp(length);
    }
  }
}
