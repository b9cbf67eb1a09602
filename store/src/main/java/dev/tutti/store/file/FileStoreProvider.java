package dev.tutti.store.file;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Store;
import dev.tutti.spi.StoreProvider;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Opens a {@link FileStore} for {@code file:///path}. When a launcher has restarted the job, each
 * attempt has a file of its own beside that path, and deletes those of earlier attempts.
 */
public final class FileStoreProvider implements StoreProvider {
  /** How often the launcher has restarted the job, as the runtime reads it. */
  private static final Setting<Integer> RESTARTS =
      Setting.integer("TORCHELASTIC_RESTART_COUNT", 0, "");

  private static final System.Logger LOG = System.getLogger(FileStore.class.getName());

  /** Creates the provider; called by the service loader. */
  public FileStoreProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String scheme() {
    return "file";
  }

  @Override
  public Store open(Request request) {
    String path = request.url().getPath();
    if (path == null || path.isEmpty() || path.equals("/")) {
      throw new RendezvousException("the path is missing in " + request.url());
    }
    int restarts = request.settings().get(RESTARTS);
    for (int i = 0; i < restarts; i++) {
      deleteLeftover(ofAttempt(path, i));
    }
    return new FileStore(
        ofAttempt(path, restarts), request.size(), request.timeout(), request.time());
  }

  /** Returns the file of an attempt, which has members of its own. */
  private static Path ofAttempt(String path, int restarts) {
    return Path.of(restarts == 0 ? path : path + ".restart" + restarts);
  }

  /** Deletes what an earlier attempt left, unless it is not a store file. */
  private static void deleteLeftover(Path file) {
    try (InputStream content = Files.newInputStream(file)) {
      byte[] begin = content.readNBytes(FileLog.BEGINNING_BYTES);
      if (begin.length == FileLog.BEGINNING_BYTES && FileLog.isBegun(begin)) {
        Files.delete(file);
      }
    } catch (NoSuchFileException e) {
      // The attempt left nothing, or another rank has deleted it.
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "cannot delete the store file of an earlier attempt", e);
    }
  }
}
