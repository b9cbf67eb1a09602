package dev.tutti.cli.process;

import dev.tutti.runtime.settings.NoRestart;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Knows which ranks said that it is of no use to start them again, by files of their own. */
public final class RestartRefusals implements AutoCloseable {
  private final @Nullable Path folder;

  private RestartRefusals(@Nullable Path folder) {
    this.folder = folder;
  }

  /**
   * Makes a folder for the files, where ranks may be started again and there is room.
   *
   * @param maxRestarts how often they may
   */
  public static RestartRefusals open(int maxRestarts) {
    if (maxRestarts == 0) {
      return new RestartRefusals(null);
    }
    try {
      return new RestartRefusals(Files.createTempDirectory("tutti-run-"));
    } catch (IOException e) {
      // All are started again, then.
      return new RestartRefusals(null);
    }
  }

  /**
   * Adds to the environment of a rank where it may say so.
   *
   * @param environment of the rank
   * @param attempt how often all ranks were restarted before
   * @param rank which
   */
  public Map<String, String> addTo(Map<String, String> environment, int attempt, int rank) {
    if (folder == null) {
      return environment;
    }
    Map<String, String> more = new HashMap<>(environment);
    more.put(NoRestart.SETTING.name(), file(folder, attempt, rank).toString());
    return more;
  }

  /** Tells whether a rank said so. */
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
          .log(System.Logger.Level.DEBUG, "deleting", e);
    }
  }
}
