package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.lightgbmlib;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The native library of {@code lightgbmlib}, whose jar contains it but does not load it. */
public final class LightGbmLibrary {
  /** The files in load order; the second needs the first. */
  private static final List<String> FILES = List.of("lib_lightgbm.so", "lib_lightgbm_swig.so");

  private LightGbmLibrary() {}

  /**
   * Loads the library from the jar, unless this process already has it, for example because
   * SynapseML loaded it. May be called from any thread, any number of times. Requires Linux on
   * x86-64 and {@code libgomp.so.1} (Debian: {@code libgomp1}).
   *
   * @throws LightGbmException if the library cannot be loaded
   */
  public static synchronized void load() {
    if (isLoaded()) {
      return;
    }
    try {
      Path folder = Files.createTempDirectory("tutti-lightgbm");
      try {
        for (String name : FILES) {
          load(name, folder.resolve(name));
        }
      } finally {
        // Loaded files stay as long as they are mapped.
        for (String name : FILES) {
          Files.deleteIfExists(folder.resolve(name));
        }
        Files.deleteIfExists(folder);
      }
    } catch (IOException | UnsatisfiedLinkError e) {
      throw new LightGbmException(
          "LightGBM's native library cannot be loaded: " + e.getMessage(), e);
    }
  }

  private static boolean isLoaded() {
    try {
      lightgbmlib.delete_intp(lightgbmlib.new_intp());
      return true;
    } catch (UnsatisfiedLinkError e) {
      return false;
    }
  }

  @SuppressWarnings("restricted")
  private static void load(String name, Path file) throws IOException {
    try (InputStream library = lightgbmlib.class.getResourceAsStream("linux/x86_64/" + name)) {
      if (library == null) {
        throw new IOException(name + " is not in the jar of lightgbmlib");
      }
      Files.copy(library, file);
    }
    System.load(file.toString());
  }
}
