package dev.tutti.runtime.settings;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/** Tells the launcher that it is of no use to start this rank again. */
public final class NoRestart {
  /** Names the file that says so where it is there. */
  public static final Setting<String> SETTING =
      Setting.text(
          "TUTTI_NO_RESTART",
          "",
          "file that a rank makes where it is of no use to start it again; tutti run sets it");

  private static final System.Logger LOG = System.getLogger(NoRestart.class.getName());

  private NoRestart() {}

  /** Makes the file, if a launcher asked for it. */
  public static void tell(Settings settings) {
    String file = settings.get(SETTING);
    if (file.isEmpty()) {
      return;
    }
    try {
      Files.createFile(Path.of(file));
    } catch (FileAlreadyExistsException e) {
      // Another group of this rank said so.
    } catch (IOException | InvalidPathException e) {
      LOG.log(Level.DEBUG, "the launcher cannot be told not to start this rank again", e);
    }
  }
}
