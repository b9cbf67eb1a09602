package dev.tutti.store.file;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

class FileStoreTest extends StoreContract {
  @TempDir private Path directory;

  @Override
  protected Store open() {
    return new FileStore(directory.resolve("store"), 1);
  }
}
