package dev.tutti.spark;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.util.Locale;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/** The conversion of Spark's settings that begin with {@code spark.tutti.} into Tutti's. */
final class SparkSettings {
  private static final String PREFIX = "spark.tutti.";

  private SparkSettings() {}

  /**
   * Adds Spark's settings to others: they override the environment, and are overridden by what the
   * program has set.
   *
   * @param settings the settings of the program and the environment
   * @param conf the configuration of the application
   */
  static Settings over(Settings settings, SparkConf conf) {
    Settings all = settings;
    for (Tuple2<String, String> pair : conf.getAllWithPrefix(PREFIX)) {
      String name = nameOf(pair._1());
      if (settings.source(Setting.text(name, "", "")) != Settings.Source.PROGRAM) {
        all = all.with(name, pair._2());
      }
    }
    return all;
  }

  /**
   * Returns the name of the Tutti setting: {@code close.timeout} and {@code closeTimeout} both
   * become {@code TUTTI_CLOSE_TIMEOUT}; a name in capitals stays as it is.
   *
   * @param key the key without the prefix
   */
  static String nameOf(String key) {
    if (key.equals(key.toUpperCase(Locale.ROOT))) {
      return key;
    }
    String words = key.replaceAll("(\\p{Ll})(\\p{Lu})", "$1_$2").replaceAll("[.-]", "_");
    return "TUTTI_" + words.toUpperCase(Locale.ROOT);
  }
}
