package dev.tutti.cli.process;

import dev.tutti.runtime.settings.NoRestart;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The ranks that reported, by files of their own, that restarting them is useless. */
public final class RestartRefusals implements AutoCloseable {
  private final @Nullable Path folder;

  private RestartRefusals(@Nullable Path folder) {
    this.folder = folder;
  }

  /**
   * Creates a folder for the files, if ranks may be restarted and there is room.
   *
   * @param maxRestarts the maximum number of restarts
   */
  public static RestartRefusals open(int maxRestarts) {
    if (maxRestarts == 0) {
      return new RestartRefusals(null);
    }
    try {
      return new RestartRefusals(Files.createTempDirectory("tutti-run-"));
    } catch (IOException e) {
      // All ranks are restarted, then.
      return new RestartRefusals(null);
    }
  }

  /**
   * Adds to the environment of a rank the file by which it may refuse a restart.
   *
   * @param environment the environment of the rank
   * @param attempt the number of previous restarts of all ranks
   * @param rank the rank
   */
  public Map<String, String> addTo(Map<String, String> environment, int attempt, int rank) {
    if (folder == null) {
      return environment;
    }
    Map<String, String> more = new HashMap<>(environment);
    more.put(NoRestart.SETTING.name(), file(folder, attempt, rank).toString());
    return more;
  }

  /** Returns whether a rank has refused a restart. */
  public boolean has(int attempt, int rank) {
    return folder != null && Files.exists(file(folder, attempt, rank));
  }

  private static Path file(Path folder, int attempt, int rank) {
    return folder.resolve(attempt + "-" + rank);
  }

  /** Deletes the folder. */
  @Override
  public void close() {
    if (folder == null) {
      return;
    }
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
      Files.delete(folder);
    } catch (IOException e) {
      System.getLogger(RestartRefusals.class.getName())
          .log(System.Logger.Level.DEBUG, "cannot delete " + folder, e);
    }
  }
}
