package dev.tutti.cli.status;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The jobs that have ranks of this user on this host, from the environment of the processes. */
final class LocalJobs {
  private static final Path PROCESSES = Path.of("/proc");

  /** The settings of a rank that say where its store is and how to be admitted. */
  private static final Set<String> ACCESS =
      Stream.concat(
              TlsSettings.all().stream(),
              Stream.of(
                  RuntimeSettings.STORE,
                  RuntimeSettings.MASTER_ADDR,
                  RuntimeSettings.MASTER_PORT,
                  JobToken.SETTING))
          .map(Setting::name)
          .collect(Collectors.toUnmodifiableSet());

  private LocalJobs() {}

  /**
   * Returns how to reach the store of each job, by its URL: from the settings of one of the job's
   * ranks, those for the store's address, token and TLS. Empty if the system does not show the
   * environment of processes.
   *
   * <p>Processes of other users do not count, although root can read their environment: they could
   * have this process connect to a store of theirs, and read files of their choice.
   */
  static SortedMap<String, Settings> find() {
    return find(PROCESSES, PROCESSES.resolve("self"));
  }

  /**
   * Finds jobs.
   *
   * @param processes the folder that has a folder for each process
   * @param own the folder of this process
   */
  static SortedMap<String, Settings> find(Path processes, Path own) {
    SortedMap<String, Settings> found = new TreeMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(processes, "[0-9]*")) {
      UserPrincipal user = Files.getOwner(own);
      for (Path process : all) {
        Map<String, String> environment = environment(process, user);
        boolean isRank =
            environment.containsKey(RuntimeSettings.RANK.name())
                && environment.containsKey(RuntimeSettings.WORLD_SIZE.name())
                && environment.containsKey(RuntimeSettings.MASTER_PORT.name());
        if (isRank) {
          environment.keySet().retainAll(ACCESS);
          Settings settings = Settings.ofEnvironment(environment);
          found.put(StoreAddress.ofEnvironment(settings), settings);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      // The files do not exist, or no longer do.
      return found;
    }
    return found;
  }

  private static Map<String, String> environment(Path process, UserPrincipal user) {
    Map<String, String> variables = new HashMap<>();
    try {
      if (!Files.getOwner(process).equals(user)) {
        return Map.of();
      }
      String all = Files.readString(process.resolve("environ"), StandardCharsets.ISO_8859_1);
      for (String each : all.split("\0", -1)) {
        int equals = each.indexOf('=');
        if (equals > 0) {
          variables.put(each.substring(0, equals), each.substring(equals + 1));
        }
      }
    } catch (IOException e) {
      // The process has ended.
      return Map.of();
    }
    return variables;
  }
}
