package dev.tutti.cuda.driver;

import dev.tutti.BackendException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import jcuda.JCudaVersion;
import jcuda.LibUtils;

/**
 * The installation of JCuda's native library where JCuda looks for it.
 *
 * <p>JCuda unpacks the library to a fixed name in the directory for temporary files, unless a file
 * of that name already exists. Two processes that start at the same time can therefore load a
 * half-written file, and anybody can plant another file there; on the module path, JCuda does not
 * find the library at all. This class therefore installs the file itself, atomically, and rejects
 * an existing file with other content.
 */
final class JCudaLibrary {
  private JCudaLibrary() {}

  /**
   * Makes sure that a directory contains the library.
   *
   * @param directory the directory for temporary files
   * @throws BackendException if the library cannot be installed, or another file is in its place
   */
  static void unpackTo(Path directory) {
    String name =
        LibUtils.createLibraryFileName(
            LibUtils.createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get()));
    try {
      unpack(directory.resolve(name), content("lib/" + name));
    } catch (IOException | UncheckedIOException e) {
      throw new BackendException("cannot copy JCuda's native library to " + directory, e);
    }
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

  static void unpack(Path file, byte[] content) throws IOException {
    if (!Files.exists(file)) {
      Path part = Files.createTempFile(file.getParent(), "tutti-jcuda", ".part");
      try {
        Files.write(part, content);
        move(part, file);
      } finally {
        Files.deleteIfExists(part);
      }
    }
    if (Files.size(file) != content.length || !Arrays.equals(Files.readAllBytes(file), content)) {
      throw new BackendException(
          file
              + " is not the native library of this version of JCuda, but has the name that JCuda"
              + " loads; remove it, or choose another directory with -Djava.io.tmpdir");
    }
  }

  private static void move(Path part, Path file) throws IOException {
    try {
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (AtomicMoveNotSupportedException e) {
      throw new BackendException(file.getParent() + " does not support atomic renames", e);
    }
  }
}
