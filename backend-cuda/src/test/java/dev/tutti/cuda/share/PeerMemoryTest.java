package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.store.HashStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Shares memory between ranks that take each other for other processes. */
class PeerMemoryTest {
  private static final List<Neighbour> RANKS =
      List.of(
          new Neighbour("host", "process 0", "0000:1B:00.0", false, 132, ""),
          new Neighbour("host", "process 1", "0000:1C:00.0", false, 132, ""));

  private final FakeCudaDriver fake = new FakeCudaDriver(2);
  private final HashStore store = new HashStore();
  @TempDir private Path directory;

  @AfterEach
  void nothingIsLeft() {
    assertThat(fake.living()).isEmpty();
    assertThat(store.listKeys()).isEmpty();
    fake.close();
  }

  /** The ranks are in step afterwards: nobody takes a descriptor of the time before. */
  @Test
  void whatOneRankCannotPassIsAFailureOnAllRanks() throws Exception {
    fake.failOn("cuMemExportToShareableHandle", 1, 801);
    Ranks.run(
        store,
        2,
        exchange -> {
          try (DeviceContext context = new DeviceContext(fake.driver(), exchange.rank());
              IpcChannel channel = IpcChannel.open(directory, exchange, Ranks.soon())) {
            context.enter();
            long stream = fake.driver().streams().create(0);
            PeerWorld world = new PeerWorld(context, stream, exchange, channel, RANKS, Sharing.VMM);
            assertThatThrownBy(() -> PeerMemory.allocate(world, 64, 0, Ranks.soon()))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("cuMemExportToShareableHandle");
            try (PeerMemory memory = PeerMemory.allocate(world, 64, 0, Ranks.soon())) {
              first(memory, exchange.rank()).set(ValueLayout.JAVA_INT, 0, 5 + exchange.rank());
              exchange.barrier(Ranks.soon());
              int peer = 1 - exchange.rank();
              assertThat(first(memory, peer).get(ValueLayout.JAVA_INT, 0)).isEqualTo(5 + peer);
              exchange.barrier(Ranks.soon());
            }
            context.enter();
            fake.driver().streams().destroy(stream);
          }
          return null;
        });
  }

  private static MemorySegment first(PeerMemory memory, int rank) {
    return MemorySegment.ofAddress(memory.address(rank)).reinterpret(Integer.BYTES);
  }
}
