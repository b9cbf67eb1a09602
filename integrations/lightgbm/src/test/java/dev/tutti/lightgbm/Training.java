package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import java.lang.foreign.Arena;
import java.util.function.Consumer;
import java.util.function.IntSupplier;

/** The training of one rank, from the rows to the text of the model, over any network. */
final class Training implements AutoCloseable {
  private static final int FLOAT32 = 0;
  private static final int FLOAT64 = 1;

  private final Consumer<IntSupplier> network;
  private final SWIGTYPE_p_int finished = lightgbmlib.new_intp();
  private SWIGTYPE_p_void data;
  private SWIGTYPE_p_void booster;

  /** Reads the rows of a rank. */
  Training(Consumer<IntSupplier> network, String task, int rows, int rank, int size) {
    this(
        network,
        task,
        rows,
        rank,
        size,
        "tree_learner=data pre_partition=true categorical_feature=10 num_machines=" + size);
  }

  /** Reads the rows of a rank, with parameters that say how ranks share the work. */
  Training(
      Consumer<IntSupplier> network, String task, int rows, int rank, int size, String sharing) {
    this.network = network;
    String parameters =
        ("objective=%s %s %s num_leaves=31 learning_rate=0.1 bagging_fraction=0.8 bagging_freq=1"
                + " num_threads=1 deterministic=true force_col_wise=true seed=7 verbosity=-1")
            .formatted(task, task.equals("multiclass") ? "num_class=3" : "", sharing);
    SWIGTYPE_p_p_void pointer = lightgbmlib.new_voidpp();
    try (Arena arena = Arena.ofConfined()) {
      GeneratedData generated = new GeneratedData(arena, task, rows, rank, size);
      network.accept(
          () ->
              lightgbmlib.LGBM_DatasetCreateFromMat(
                  NativePointer.of(generated.features),
                  FLOAT64,
                  generated.rows,
                  GeneratedData.COLUMNS,
                  1,
                  parameters,
                  null,
                  pointer));
      data = lightgbmlib.voidpp_value(pointer);
      network.accept(
          () ->
              lightgbmlib.LGBM_DatasetSetField(
                  data, "label", NativePointer.of(generated.labels), generated.rows, FLOAT32));
      network.accept(() -> lightgbmlib.LGBM_BoosterCreate(data, parameters, pointer));
      booster = lightgbmlib.voidpp_value(pointer);
    } catch (RuntimeException e) {
      close();
      throw e;
    } finally {
      lightgbmlib.delete_voidpp(pointer);
    }
  }

  void round() {
    network.accept(() -> lightgbmlib.LGBM_BoosterUpdateOneIter(booster, finished));
  }

  String model() {
    SWIGTYPE_p_long_long length = lightgbmlib.new_int64_tp();
    try {
      return lightgbmlib.LGBM_BoosterSaveModelToStringSWIG(booster, 0, -1, 0, 1 << 20, length);
    } finally {
      lightgbmlib.delete_int64_tp(length);
    }
  }

  @Override
  public void close() {
    if (booster != null) {
      lightgbmlib.LGBM_BoosterFree(booster);
    }
    if (data != null) {
      lightgbmlib.LGBM_DatasetFree(data);
    }
    lightgbmlib.delete_intp(finished);
  }
}
