package dev.tutti.runtime.settings;

import dev.tutti.Setting;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Holds the names of settings, and finds names that look like a setting but are none. */
public final class SettingNames {
  private static final String PREFIX = "TUTTI_";

  /**
   * Tutti's own settings, including those of parts that may not be on the class path, so that no
   * rank calls them unknown; {@code TUTTI_CLASS_PATH} is read by the script {@code tutti}.
   */
  public static final Set<String> OF_TUTTI =
      Stream.concat(
              RuntimeSettings.all().stream()
                  .map(Setting::name)
                  .filter(name -> name.startsWith(PREFIX)),
              Stream.of(
                  "TUTTI_AERON_DIR",
                  "TUTTI_AERON_DRIVER",
                  "TUTTI_AERON_LEASE",
                  "TUTTI_AERON_TRANSPORT",
                  "TUTTI_CLASS_PATH",
                  "TUTTI_CUDA_SHARING",
                  "TUTTI_FAKE_ERROR_ON_COLLECTIVE",
                  "TUTTI_FAKE_UNIFORM_RANKS",
                  "TUTTI_GLOO_SHARED_BYTES",
                  "TUTTI_GLOO_SHARED_DIR",
                  "TUTTI_GLOO_TLS",
                  "TUTTI_NCCL_LAZY",
                  "TUTTI_NCCL_LIBRARY",
                  "TUTTI_TLS",
                  "TUTTI_TOKEN",
                  "TUTTI_X_AERON_SPIN",
                  "TUTTI_X_CUDA_CHUNK_BYTES",
                  "TUTTI_X_CUDA_COPIES_BYTES",
                  "TUTTI_X_CUDA_COPIES_PIECE_BYTES",
                  "TUTTI_X_CUDA_LANES",
                  "TUTTI_X_CUDA_ONE_SHOT_BYTES",
                  "TUTTI_X_CUDA_TWO_SHOT_BYTES",
                  "TUTTI_X_GLOO_ALGORITHMS",
                  "TUTTI_X_GLOO_CUDA_CHUNK_BYTES",
                  "TUTTI_X_GLOO_CUDA_DIRECT",
                  "TUTTI_X_GLOO_READ_MEMORY",
                  "TUTTI_X_GLOO_SPIN",
                  "TUTTI_X_GLOO_TWO_LEVEL"))
          .collect(Collectors.toUnmodifiableSet());

  private SettingNames() {}

  /**
   * Returns the names that look like a setting of Tutti's but are not one, sorted.
   *
   * @param names the names, such as those of environment variables
   */
  public static List<String> foreign(Collection<String> names) {
    return names.stream()
        .filter(name -> name.toUpperCase(Locale.ROOT).startsWith(PREFIX))
        .filter(name -> !OF_TUTTI.contains(name))
        .sorted()
        .toList();
  }

  /**
   * Returns the setting that the user may have meant.
   *
   * @param name a name that is not a setting
   * @param declared the settings declared on the class path; Tutti's own need not be among them
   */
  public static Optional<String> nearest(String name, Collection<String> declared) {
    Set<String> all = new HashSet<>(OF_TUTTI);
    all.addAll(declared);
    return Spelling.nearest(name.toUpperCase(Locale.ROOT), all);
  }

  /**
   * Returns the setting that a system property stands for, as {@code tutti.close.timeout} or {@code
   * TUTTI_CLOSE_TIMEOUT} does.
   */
  static Optional<String> ofProperty(String property) {
    String name = property.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_');
    return OF_TUTTI.contains(name) ? Optional.of(name) : Optional.empty();
  }

  /** Returns the system properties whose names stand for a setting, sorted. */
  static Set<String> properties() {
    Set<String> found = new TreeSet<>(System.getProperties().stringPropertyNames());
    found.removeIf(property -> ofProperty(property).isEmpty());
    return found;
  }
}
