package dev.tutti.cuda.driver;

import dev.tutti.BackendException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Consumer;
import jcuda.JCudaVersion;
import jcuda.LibUtils;

/**
 * The way JCuda's native library gets into this process.
 *
 * <p>JCuda unpacks the library to a fixed name in the directory for temporary files, unless a file
 * of that name exists already, and loads it from there. So any user of the host could plant code
 * there. JCuda reads the directory from a system property when its driver class is initialized.
 * This class therefore unpacks the library into a new directory that only this user can enter,
 * points the property to it for the time of that initialization, and then deletes both, since a
 * loaded library stays mapped. Only one thread at a time does so.
 */
final class JCudaLibrary {
  private static final String DIRECTORY = "java.io.tmpdir";
  private static final int STICKY = 01000;
  private static final int WRITABLE_BY_OTHERS = 0022;

  private JCudaLibrary() {}

  /**
   * Loads the library, unless JCuda has loaded it already.
   *
   * @throws BackendException if the library cannot be unpacked
   * @throws LinkageError if it cannot be loaded
   */
  static void load() {
    loadFrom(
        Path.of(System.getProperty(DIRECTORY)),
        _ -> {
          try {
            Class.forName("jcuda.driver.JCudaDriver");
          } catch (ClassNotFoundException e) {
            throw new NoClassDefFoundError(e.getMessage());
          }
        });
  }

  /**
   * Unpacks the library for as long as an action runs.
   *
   * @param parent the directory for temporary files
   * @param action receives the file, while JCuda takes its directory for that of temporary files
   */
  static synchronized void loadFrom(Path parent, Consumer<Path> action) {
    try {
      requireSafe(parent);
      Path folder = Files.createTempDirectory(parent, "tutti-jcuda");
      Path file = folder.resolve(name());
      String before = System.getProperty(DIRECTORY);
      try {
        Files.write(file, content("lib/" + name()), StandardOpenOption.CREATE_NEW);
        System.setProperty(DIRECTORY, folder.toString());
        action.accept(file);
      } finally {
        System.setProperty(DIRECTORY, before);
        Files.deleteIfExists(file);
        Files.deleteIfExists(folder);
      }
    } catch (IOException | UncheckedIOException e) {
      throw new BackendException("cannot copy JCuda's native library to " + parent, e);
    }
  }

  /** Throws if another user could rename what this process creates in a directory. */
  private static void requireSafe(Path parent) throws IOException {
    int mode = (int) Files.getAttribute(parent, "unix:mode");
    if ((mode & WRITABLE_BY_OTHERS) != 0 && (mode & STICKY) == 0) {
      throw new BackendException(
          parent
              + " is not safe for JCuda's native library: other users may replace files there;"
              + " run chmod +t on it, or choose another directory with -Djava.io.tmpdir");
    }
  }

  private static String name() {
    return LibUtils.createLibraryFileName(
        LibUtils.createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get()));
  }

  private static byte[] content(String resource) throws IOException {
    ClassLoader loader = LibUtils.class.getClassLoader();
    try (InputStream in = loader.getResourceAsStream(resource)) {
      if (in == null) {
        throw new BackendException(
            "JCuda has no native code for this platform on the class path: "
                + resource
                + " is missing; it comes in the jar jcuda-natives with the platform's classifier");
      }
      return in.readAllBytes();
    }
  }
}
