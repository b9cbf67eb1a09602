package dev.tutti.cli.status;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.runtime.launch.LaunchEnvironments;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.PeerLateException;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The jobs that have ranks of this user on this host, from the environment of the processes. */
final class LocalJobs {
  private static final Path PROCESSES = Path.of("/proc");

  private static final Pattern PARENT = Pattern.compile("(?m)^PPid:\\s*(\\d+)");

  /** The settings that say where a store is, which launchers have other names for. */
  private static final List<String> PLACE =
      List.of(RuntimeSettings.MASTER_ADDR.name(), RuntimeSettings.MASTER_PORT.name());

  /** The settings of a rank that say of what kind its store is and how to be admitted. */
  private static final Set<String> ACCESS =
      Stream.concat(
              TlsSettings.all().stream(),
              Stream.of(RuntimeSettings.STORE, RuntimeSettings.INIT_METHOD, JobToken.SETTING))
          .map(Setting::name)
          .collect(Collectors.toUnmodifiableSet());

  /** The options of java whose value is the next word. */
  private static final Set<String> WITH_VALUE =
      Set.of("-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules");

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss").withZone(ZoneId.systemDefault());

  private LocalJobs() {}

  /**
   * A job that has ranks on this host, with the settings of one of them that say how to reach its
   * store: its address, token and TLS.
   */
  record LocalJob(Settings settings, SortedSet<Integer> ranks, String description) {
    String describe() {
      return PeerLateException.ranks(List.copyOf(ranks)) + " of " + description;
    }
  }

  /** A rank on this host, with the folder of its process and how to reach its store. */
  private record LocalRank(Path process, Settings access, int rank, String size) {
    String url() {
      return StoreAddress.ofEnvironment(access);
    }
  }

  /**
   * Returns each job by the URL of its store. Empty if the system does not show the environment of
   * processes.
   *
   * <p>Processes of other users do not count, although root can read their environment: they could
   * have this process connect to a store of theirs, and read files of their choice.
   */
  static SortedMap<String, LocalJob> find() {
    return find(PROCESSES, PROCESSES.resolve("self"));
  }

  /** Finds jobs in the folder that has a folder for each process, beside an own process. */
  static SortedMap<String, LocalJob> find(Path processes, Path own) {
    SortedMap<String, LocalJob> found = new TreeMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(processes, "[0-9]*")) {
      UserPrincipal user = Files.getOwner(own);
      List<LocalRank> ranks = new ArrayList<>();
      for (Path process : all) {
        rank(process, environment(process, user)).ifPresent(ranks::add);
      }
      Set<Path> launchers = launchers(ranks, own.toRealPath());
      ranks.removeIf(rank -> launchers.contains(rank.process));
      for (LocalRank rank : ranks) {
        found
            .computeIfAbsent(
                rank.url(),
                _ -> new LocalJob(rank.access, new TreeSet<>(), describe(rank, user.toString())))
            .ranks()
            .add(rank.rank);
      }
    } catch (IOException | DirectoryIteratorException e) {
      // The files do not exist, or no longer do.
      return found;
    }
    return found;
  }

  /** Reads an environment as the runtime of a rank does; empty if it is none of a rank. */
  private static Optional<LocalRank> rank(Path process, Map<String, String> environment) {
    Settings complete;
    try {
      complete = LaunchEnvironments.complete(Settings.ofEnvironment(environment));
    } catch (RendezvousException e) {
      // Variables of several launchers that contradict each other, or only a part of one's.
      return Optional.empty();
    }
    String rank = complete.text(RuntimeSettings.RANK.name()).orElse("").strip();
    String size = complete.text(RuntimeSettings.WORLD_SIZE.name()).orElse("").strip();
    Map<String, String> access = new HashMap<>(environment);
    access.keySet().retainAll(ACCESS);
    for (String name : PLACE) {
      complete.text(name).ifPresent(value -> access.put(name, value));
    }
    boolean isPlaceKnown =
        access.containsKey(RuntimeSettings.MASTER_PORT.name())
            || access.containsKey(RuntimeSettings.INIT_METHOD.name());
    return rank.matches("[0-9]{1,9}") && !size.isEmpty() && isPlaceKnown
        ? Optional.of(
            new LocalRank(process, Settings.ofEnvironment(access), Integer.parseInt(rank), size))
        : Optional.empty();
  }

  /**
   * Returns the processes that only look like ranks, since their environment is that of a rank:
   * this process, and those that started it or the ranks of another job, such as a shell under
   * srun.
   */
  private static Set<Path> launchers(List<LocalRank> ranks, Path self) {
    Set<Path> all = new HashSet<>(Set.of(self));
    addParents(self, all);
    for (LocalRank rank : ranks) {
      Set<Path> parents = new HashSet<>();
      addParents(rank.process, parents);
      ranks.stream()
          .filter(other -> parents.contains(other.process) && !other.url().equals(rank.url()))
          .forEach(other -> all.add(other.process));
    }
    return all;
  }

  private static void addParents(Path process, Set<Path> all) {
    try {
      Matcher parent = PARENT.matcher(Files.readString(process.resolve("status"), ISO_8859_1));
      if (parent.find() && all.add(process.resolveSibling(parent.group(1)))) {
        addParents(process.resolveSibling(parent.group(1)), all);
      }
    } catch (IOException e) {
      // The process has ended.
    }
  }

  private static String describe(LocalRank rank, String user) {
    return rank.size + ", " + program(rank.process) + ", user " + user + since(rank.process);
  }

  /** Returns the name of a process's program, with the main class or jar of a Java program. */
  private static String program(Path process) {
    String[] words;
    try {
      words = Files.readString(process.resolve("cmdline"), UTF_8).split("\0", -1);
    } catch (IOException e) {
      return "process " + process.getFileName();
    }
    String name = words[0].substring(words[0].lastIndexOf('/') + 1);
    for (int i = 1; i < words.length && name.startsWith("java"); i++) {
      if (!words[i].startsWith("-")) {
        return name + " " + words[i];
      }
      i += WITH_VALUE.contains(words[i]) ? 1 : 0;
    }
    return name;
  }

  private static String since(Path process) {
    return ProcessHandle.of(Long.parseLong(process.getFileName().toString()))
        .flatMap(handle -> handle.info().startInstant())
        .map(start -> ", since " + TIME.format(start))
        .orElse("");
  }

  private static Map<String, String> environment(Path process, UserPrincipal user) {
    Map<String, String> variables = new HashMap<>();
    try {
      if (!Files.getOwner(process).equals(user)) {
        return Map.of();
      }
      String all = Files.readString(process.resolve("environ"), ISO_8859_1);
      for (String each : all.split("\0", -1)) {
        String[] parts = each.split("=", 2);
        if (parts.length == 2) {
          variables.put(parts[0], parts[1]);
        }
      }
    } catch (IOException e) {
      // The process has ended.
      return Map.of();
    }
    return variables;
  }
}
