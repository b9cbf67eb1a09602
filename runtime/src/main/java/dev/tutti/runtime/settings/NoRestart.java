package dev.tutti.runtime.settings;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/** Notifies the launcher that restarting this rank is pointless. */
public final class NoRestart {
  /** The name of the file whose presence notifies the launcher. */
  public static final Setting<String> SETTING =
      Setting.text(
          "TUTTI_X_NO_RESTART",
          "",
          "file that a rank creates if a restart would not help; set by tutti run");

  private static final System.Logger LOG = System.getLogger(NoRestart.class.getName());

  private NoRestart() {}

  /** Creates the file if a launcher asked for it. */
  public static void tell(Settings settings) {
    String file = settings.get(SETTING);
    if (file.isEmpty()) {
      return;
    }
    try {
      Files.createFile(Path.of(file));
    } catch (FileAlreadyExistsException e) {
      // Another group of this rank has already created it.
    } catch (IOException | InvalidPathException e) {
      LOG.log(Level.DEBUG, "cannot ask the launcher not to restart this rank", e);
    }
  }
}
