package dev.tutti.peer.libtorch;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.net.JarURLConnection;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The Java command line of a process that loads libtorch.
 *
 * <p>A module that starts peers takes this module as a test-scope dependency. The jars, and only
 * these, are then found through the class loader of this class, whatever else the test runner put
 * on its path.
 */
public final class LibtorchClasspath {
  private static final String PLATFORM = "linux-x86_64";

  /** One resource of every jar a peer needs, in the order of the class path. */
  private static final List<String> MARKS =
      List.of(
          "dev/tutti/peer/libtorch/LibtorchPeer.class",
          "org/bytedeco/pytorch/ProcessGroupGloo.class",
          "org/bytedeco/pytorch/" + PLATFORM + "/libjnitorch.so",
          "org/bytedeco/javacpp/Loader.class",
          "org/bytedeco/javacpp/" + PLATFORM + "/libjnijavacpp.so",
          "org/bytedeco/openblas/global/openblas.class",
          "org/bytedeco/openblas/" + PLATFORM + "/libjniopenblas_nolapack.so");

  private LibtorchClasspath() {}

  /**
   * Returns why no peer can run here.
   *
   * @return the reason, empty on Linux x86-64 with all jars on the class path
   */
  public static Optional<String> unsupportedReason() {
    var system = ManagementFactory.getOperatingSystemMXBean();
    if (!system.getName().equals("Linux") || !system.getArch().equals("amd64")) {
      return Optional.of(
          "libtorch peers run on Linux amd64 only, this is "
              + system.getName()
              + " "
              + system.getArch());
    }
    for (String mark : MARKS) {
      if (LibtorchClasspath.class.getClassLoader().getResource(mark) == null) {
        return Optional.of("the class path lacks the jar that holds " + mark);
      }
    }
    return Optional.empty();
  }

  /**
   * Returns the directory into which JavaCPP unpacks the native libraries, about 450 MB, once for
   * all runs.
   *
   * @return {@code tutti/javacpp} under {@code XDG_CACHE_HOME}, or under {@code .cache} of the home
   *     directory
   */
  public static Path defaultCacheDirectory() {
    String cache = System.getenv("XDG_CACHE_HOME");
    if (cache != null && !cache.isEmpty()) {
      return Path.of(cache, "tutti", "javacpp");
    }
    String home = System.getenv("HOME");
    return Path.of(home == null ? "/tmp" : home, ".cache", "tutti", "javacpp");
  }

  /**
   * Builds the command that runs a class of this package with the current Java.
   *
   * @param main class with a {@code main}
   * @param cacheDirectory where the native libraries are unpacked
   * @param arguments arguments of the program
   * @return program and arguments for a {@link ProcessBuilder}
   * @throws IllegalStateException if {@link #unsupportedReason} gives a reason
   */
  public static List<String> command(Class<?> main, Path cacheDirectory, List<String> arguments) {
    unsupportedReason()
        .ifPresent(
            reason -> {
              throw new IllegalStateException(reason);
            });
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElse("java"));
    command.add("-cp");
    command.add(classPath());
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add("--sun-misc-unsafe-memory-access=allow");
    command.add("-XX:+UseSerialGC");
    command.add("-Dorg.bytedeco.javacpp.cachedir=" + cacheDirectory);
    command.add(main.getName());
    command.addAll(arguments);
    return command;
  }

  /** Identifies what is unpacked: the name changes when a native jar does. */
  static String nativeJars() {
    return MARKS.stream()
        .filter(mark -> mark.contains(PLATFORM))
        .map(mark -> String.valueOf(entryOf(mark).getFileName()))
        .collect(Collectors.joining(" "));
  }

  private static String classPath() {
    Set<Path> entries = new LinkedHashSet<>();
    for (String mark : MARKS) {
      entries.add(entryOf(mark));
    }
    return entries.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
  }

  private static Path entryOf(String mark) {
    URL url = LibtorchClasspath.class.getClassLoader().getResource(mark);
    try {
      if (url != null && url.openConnection() instanceof JarURLConnection jar) {
        return Path.of(jar.getJarFileURL().toURI());
      }
      if (url != null && url.getProtocol().equals("file")) {
        String text = url.toString();
        return Path.of(URI.create(text.substring(0, text.length() - mark.length())));
      }
    } catch (java.io.IOException | URISyntaxException e) {
      throw new IllegalStateException("cannot locate the jar of " + mark + " at " + url, e);
    }
    throw new IllegalStateException(
        "cannot locate " + mark + ": expected a jar or a directory, got " + url);
  }
}
