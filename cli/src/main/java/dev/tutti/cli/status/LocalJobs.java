package dev.tutti.cli.status;

import dev.tutti.Settings;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** The jobs that have ranks of this user on this host, from the environment of the processes. */
final class LocalJobs {
  private static final Path PROCESSES = Path.of("/proc");

  private LocalJobs() {}

  /**
   * Returns the settings of one rank of each job, by the URL of the job's store; empty if the
   * system does not show the environment of processes.
   */
  static SortedMap<String, Settings> find() {
    return find(PROCESSES);
  }

  static SortedMap<String, Settings> find(Path processes) {
    SortedMap<String, Settings> found = new TreeMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(processes, "[0-9]*")) {
      for (Path process : all) {
        Map<String, String> environment = environment(process.resolve("environ"));
        boolean isRank =
            environment.containsKey(RuntimeSettings.RANK.name())
                && environment.containsKey(RuntimeSettings.WORLD_SIZE.name())
                && environment.containsKey(RuntimeSettings.MASTER_PORT.name());
        if (isRank) {
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

  private static Map<String, String> environment(Path file) {
    Map<String, String> variables = new HashMap<>();
    try {
      for (String each : Files.readString(file, StandardCharsets.ISO_8859_1).split("\0", -1)) {
        int equals = each.indexOf('=');
        if (equals > 0) {
          variables.put(each.substring(0, equals), each.substring(equals + 1));
        }
      }
    } catch (IOException e) {
      // The process has ended, or belongs to another user.
      return Map.of();
    }
    return variables;
  }
}
