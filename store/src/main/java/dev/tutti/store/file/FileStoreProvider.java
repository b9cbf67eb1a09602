package dev.tutti.store.file;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.spi.StoreProvider;
import java.nio.file.Path;

/** Opens a {@link FileStore} for {@code file:///path}. */
public final class FileStoreProvider implements StoreProvider {
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
    return new FileStore(Path.of(path), request.size(), request.timeout(), request.time());
  }
}
