package dev.tutti.testing;

import dev.tutti.Store;
import dev.tutti.store.file.FileStore;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

class FileStoreTest extends StoreContract {
  @TempDir private Path directory;

  @Override
  protected Store open() {
    return new FileStore(directory.resolve("store"), 1);
  }
}
