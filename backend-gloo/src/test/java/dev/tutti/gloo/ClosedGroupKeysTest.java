package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.contracts.TestTier;
import dev.tutti.gloo.backend.GlooBackend;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that the keys of closed groups do not stay in the store. */
class ClosedGroupKeysTest {
  private static final int GROUPS = TestTier.isFast() ? 200 : 1000;

  private static long keys(ProcessGroup group) {
    // The server replies to no set, only to later calls of this rank.
    long _ = group.store().keyCount();
    group.barrier();
    long count = group.store().keyCount();
    group.barrier();
    return count;
  }

  private static void makeAndClose(IntFunction<Store> stores, Settings settings, int groups)
      throws Exception {
    List<Long> left =
        GlooWorld.inParallel(
            2,
            Duration.ofSeconds(270),
            rank -> {
              GroupOptions options =
                  GroupOptions.DEFAULT
                      .withStore(stores.apply(rank))
                      .withRank(rank)
                      .withSize(2)
                      .withProvider(new GlooProvider())
                      .withSettings(settings)
                      .withTimeout(GlooWorld.TIMEOUT);
              try (ProcessGroup group = ProcessGroup.init(options)) {
                long before = keys(group);
                for (int i = 0; i < groups; i++) {
                  try (ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow()) {
                    Tensor tensor = Tensor.of(1f);
                    part.allReduce(tensor);
                    assertThat(tensor.toFloatArray()).containsExactly(2f);
                  }
                }
                return keys(group) - before;
              }
            });
    assertThat(left).containsExactly(0L, 0L);
  }

  @Test
  void manyGroupsLeaveNoKeys() throws Exception {
    HashStore store = new HashStore();
    makeAndClose(rank -> store, GlooWorld.settings(), GROUPS);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "16MiB"})
  void groupsLeaveNoKeysInAServer(String sharedMemory) throws Exception {
    Settings settings = GlooWorld.settings(GlooBackend.SHARED_BYTES, sharedMemory);
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
        TcpStore first = new TcpStore("127.0.0.1", server.port());
        TcpStore second = new TcpStore("127.0.0.1", server.port())) {
      makeAndClose(rank -> rank == 0 ? first : second, settings, 50);
    }
  }
}
