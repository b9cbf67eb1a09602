package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.ProcessGroup;

/** The compiled example of {@link LightGbmNetwork}; {@link Training} is one that runs. */
final class LightGbmSnippets {
  private LightGbmSnippets() {}

  static void train(SWIGTYPE_p_void data, String parameters, int rounds) {
    SWIGTYPE_p_p_void pointer = lightgbmlib.new_voidpp();
    SWIGTYPE_p_int finished = lightgbmlib.new_intp();
    // @start region="train"
    try (ProcessGroup group = ProcessGroup.init();
        LightGbmNetwork network = LightGbmNetwork.open(group)) {
      network.call(() -> lightgbmlib.LGBM_BoosterCreate(data, parameters, pointer));
      SWIGTYPE_p_void booster = lightgbmlib.voidpp_value(pointer);
      for (int round = 0; round < rounds; round++) {
        network.call(() -> lightgbmlib.LGBM_BoosterUpdateOneIter(booster, finished));
      }
    }
    // @end
  }
}
