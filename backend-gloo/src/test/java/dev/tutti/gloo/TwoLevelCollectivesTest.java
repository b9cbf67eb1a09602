package dev.tutti.gloo;

import dev.tutti.contracts.Sampled;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** Tests the collectives on hosts whose ranks are not consecutive. */
@Sampled
class TwoLevelCollectivesTest extends CollectivesTest {
  @TempDir Path directory;

  @Override
  BackendProvider provider() {
    return new HostsProvider(directory, rank -> rank % 2);
  }

  @Override
  String sharedBytes() {
    return "512K";
  }
}
