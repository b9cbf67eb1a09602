package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The NCCL library, loaded from where a setting points, otherwise from where the loader finds it,
 * otherwise from a Python {@code nvidia-nccl} wheel. A process loads only one NCCL.
 */
public final class NcclLibrary {
  /** The file to load. */
  public static final Setting<String> FILE =
      Setting.text(
          "TUTTI_NCCL_LIBRARY",
          "",
          "file of the NCCL library, such as /opt/nccl/lib/libnccl.so.2; if not set, the one that"
              + " the loader finds, else that of an nvidia-nccl wheel");

  /** The oldest supported version. */
  public static final int REQUIRED_VERSION = 22700;

  private static final String NAME = "libnccl.so.2";
  private static final String IN_WHEEL = "nvidia/nccl/lib/" + NAME;
  private static @Nullable NcclLibrary loaded;

  private final NcclCalls calls;
  private final int version;
  private final String origin;

  private NcclLibrary(NcclCalls calls, String origin) {
    this.calls = calls;
    this.version = calls.version();
    this.origin = origin;
    if (version < REQUIRED_VERSION) {
      throw new BackendException(
          "NCCL %s from %s is too old; %s or newer is required; set %s to its file"
              .formatted(versionText(version), origin, versionText(REQUIRED_VERSION), FILE.name()));
    }
  }

  /**
   * Returns the library of this process; the first call that finds one loads it.
   *
   * @param settings the settings, which may name the file
   * @throws BackendException if no library is found or it is too old; the message says where NCCL
   *     was searched for
   */
  public static synchronized NcclLibrary get(Settings settings) {
    NcclLibrary known = loaded;
    if (known == null) {
      known = load(settings, wheelFolders(settings));
      loaded = known;
    }
    return known;
  }

  static NcclLibrary load(Settings settings, List<Path> folders) {
    String set = settings.get(FILE);
    if (!set.isEmpty()) {
      SymbolLookup library =
          open(set)
              .orElseThrow(
                  () ->
                      new BackendException(
                          "the loader cannot load " + set + ", the value of " + FILE.name()));
      return new NcclLibrary(new LibNccl(library), set + " (" + FILE.name() + ")");
    }
    Optional<SymbolLookup> ofLoader = open(NAME);
    if (ofLoader.isPresent()) {
      return new NcclLibrary(
          new LibNccl(ofLoader.get()), mappedFile().orElse(NAME) + " (found by the loader)");
    }
    for (Path folder : folders) {
      Path file = folder.resolve(IN_WHEEL);
      Optional<SymbolLookup> ofWheel =
          Files.isRegularFile(file) ? open(file.toString()) : Optional.empty();
      if (ofWheel.isPresent()) {
        return new NcclLibrary(new LibNccl(ofWheel.get()), file + " (nvidia-nccl wheel)");
      }
    }
    throw new BackendException(
        ("no NCCL: the loader cannot find %s, and there is no nvidia-nccl wheel in %s; install NCCL"
                + " %s or newer, or set the path of its file with %s")
            .formatted(NAME, folders, versionText(REQUIRED_VERSION), FILE.name()));
  }

  private static Optional<SymbolLookup> open(String name) {
    try {
      return Optional.of(SymbolLookup.libraryLookup(name, Arena.global()));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  /**
   * Returns the directories in which Python keeps packages, those of an active environment first.
   */
  static List<Path> wheelFolders(Settings settings) {
    List<Path> roots = new ArrayList<>();
    settings.text("VIRTUAL_ENV").map(Path::of).ifPresent(roots::add);
    settings.text("CONDA_PREFIX").map(Path::of).ifPresent(roots::add);
    settings.text("HOME").map(home -> Path.of(home, ".local")).ifPresent(roots::add);
    roots.add(Path.of("/usr/local"));
    roots.add(Path.of("/usr"));
    List<Path> folders = new ArrayList<>();
    for (Path root : roots) {
      for (Path python : pythons(root.resolve("lib"))) {
        folders.add(python.resolve("site-packages"));
        folders.add(python.resolve("dist-packages"));
      }
    }
    return folders.stream().filter(Files::isDirectory).toList();
  }

  /** Returns the directories of the Python versions, newest first. */
  private static List<Path> pythons(Path lib) {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(lib, "python3*")) {
      all.forEach(found::add);
    } catch (IOException e) {
      return List.of();
    }
    found.sort(Comparator.comparingInt((Path p) -> minorVersion(p)).reversed());
    return found;
  }

  private static int minorVersion(Path python) {
    String digits = String.valueOf(python.getFileName()).replaceAll("^python3\\.?|\\D", "");
    return digits.isEmpty() || digits.length() > 4 ? 0 : Integer.parseInt(digits);
  }

  /** Returns the file that the loader chose. */
  private static Optional<String> mappedFile() {
    try (var lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines
          .filter(line -> line.contains("/libnccl.so"))
          .map(line -> line.substring(line.indexOf('/')))
          .findFirst();
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** Returns the calls of the library. */
  public NcclCalls calls() {
    return calls;
  }

  /** Describes the version and origin of the library. */
  public String describe() {
    return "NCCL " + versionText(version) + " from " + origin;
  }

  /** Formats a version number of NCCL, such as 22809, in the usual dotted form. */
  public static String versionText(int version) {
    return version / 10000 + "." + version % 10000 / 100 + "." + version % 100;
  }
}
