package dev.tutti.lightgbm;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** Loads LightGBM's library from a folder, and prints the files that this process has mapped. */
public final class LoadFrom {
  private LoadFrom() {}

  /** Takes the folder. */
  public static void main(String[] args) throws Exception {
    LightGbmLibrary.load(Path.of(args[0]));
    LightGbmLibrary.load(Path.of(args[0]).resolve("."));
    LightGbmLibrary.load();
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      lines
          .filter(line -> line.contains("lib_lightgbm"))
          .map(line -> line.substring(line.indexOf('/')))
          .distinct()
          .forEach(System.out::println);
    }
  }
}
