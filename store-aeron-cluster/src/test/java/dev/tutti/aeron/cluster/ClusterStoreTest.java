package dev.tutti.aeron.cluster;

import dev.tutti.Store;
import dev.tutti.aeron.SharedStore;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.StoreContract;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the contract on a cluster of three members; each test uses its own keys and queues. The
 * longest value takes 11 s when every thread waits for a core.
 */
@SuppressWarnings("JUnitMethodInvoked") // to say for one when it runs
@Sampled
@Timeout(value = 300, unit = TimeUnit.SECONDS, threadMode = ThreadMode.SEPARATE_THREAD)
class ClusterStoreTest extends StoreContract {
  @TempDir private static Path directory;

  private static TestCluster cluster;
  private static AeronClusterStore store;
  private static int tests;

  @BeforeAll
  static void startCluster() throws Exception {
    cluster = new TestCluster(directory, JobToken.NONE);
    store = cluster.connect();
  }

  @AfterAll
  static void closeCluster() {
    store.close();
    cluster.close();
  }

  @Override
  protected Store open() {
    SharedStore.deleteAll(store);
    return new PrefixStore("test" + ++tests, store);
  }

  /** Takes eight seconds here. */
  @Override
  @Tag("full")
  @Test
  public void keepsTheLongestValue() {
    super.keepsTheLongestValue();
  }
}
