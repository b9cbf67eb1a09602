package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.lightgbmlib;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The native library of {@code lightgbmlib}, whose jar contains it but does not load it; or another
 * build of it, of a later version of LightGBM.
 */
public final class LightGbmLibrary {
  /** The files in load order; the second needs the first. */
  private static final List<String> FILES = List.of("lib_lightgbm.so", "lib_lightgbm_swig.so");

  private static @Nullable Path loaded;

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
          unpack(name, folder.resolve(name));
        }
        loadFiles(folder);
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

  /**
   * Loads the library from a folder instead of the jar, before anything else loads it. Any later
   * {@link #load()} keeps it. May be called from any thread, any number of times.
   *
   * @param folder the folder with {@code lib_lightgbm.so} and {@code lib_lightgbm_swig.so}, as a
   *     build of LightGBM with {@code -DUSE_SWIG=ON} makes them
   * @throws LightGbmException if a file is missing or cannot be loaded, or this process already has
   *     the library from elsewhere
   */
  public static synchronized void load(Path folder) {
    Path from = folder.toAbsolutePath().normalize();
    if (from.equals(loaded)) {
      return;
    }
    for (String name : FILES) {
      if (!Files.isRegularFile(from.resolve(name))) {
        throw new LightGbmException(
            "folder " + from + " must have the files " + FILES + ", but has no " + name, null);
      }
    }
    if (isLoaded()) {
      throw new LightGbmException(
          "this process already has LightGBM's native library, not from "
              + from
              + "; load that one first",
          null);
    }
    try {
      loadFiles(from);
    } catch (UnsatisfiedLinkError e) {
      throw new LightGbmException(
          "LightGBM's native library cannot be loaded from " + from + ": " + e.getMessage(), e);
    }
    loaded = from;
  }

  private static boolean isLoaded() {
    try {
      lightgbmlib.delete_intp(lightgbmlib.new_intp());
      return true;
    } catch (UnsatisfiedLinkError e) {
      return false;
    }
  }

  private static void unpack(String name, Path file) throws IOException {
    try (InputStream library = lightgbmlib.class.getResourceAsStream("linux/x86_64/" + name)) {
      if (library == null) {
        throw new IOException(name + " is not in the jar of lightgbmlib");
      }
      Files.copy(library, file);
    }
  }

  @SuppressWarnings("restricted")
  private static void loadFiles(Path folder) {
    for (String name : FILES) {
      System.load(folder.resolve(name).toString());
    }
  }
}
