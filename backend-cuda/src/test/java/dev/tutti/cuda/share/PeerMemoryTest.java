package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.store.HashStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
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

  /** Is what a rank does that has met the other one. */
  private interface Body {
    void run(PeerWorld world) throws Exception;
  }

  private void inWorld(Sharing sharing, Body body) throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          try (DeviceContext context = new DeviceContext(fake.driver(), exchange.rank());
              IpcChannel channel = IpcChannel.open(directory, exchange, Ranks.soon())) {
            context.enter();
            long stream = fake.driver().streams().create(0);
            body.run(new PeerWorld(context, stream, exchange, channel, RANKS, sharing));
            context.enter();
            fake.driver().streams().destroy(stream);
          }
          return null;
        });
  }

  /** The ranks are in step afterwards: nobody takes a descriptor of the time before. */
  @Test
  void whatOneRankCannotPassIsAFailureOnAllRanks() throws Exception {
    fake.failOn("cuMemExportToShareableHandle", 1, 801);
    inWorld(
        Sharing.VMM,
        world -> {
          StoreExchange exchange = world.exchange();
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
        });
  }

  /** Is what a rank does with memory that it and a rank of another process have opened. */
  private interface OpenedBody {
    void run(StoreExchange exchange, PeerMemory memory) throws Exception;
  }

  private void withOpenedMemory(OpenedBody body) throws Exception {
    inWorld(
        Sharing.IPC,
        world -> {
          PeerMemory memory = PeerMemory.allocate(world, 64, 0, Ranks.soon());
          world.exchange().barrier(Ranks.soon());
          body.run(world.exchange(), memory);
        });
  }

  @Test
  void whatAnotherProcessHasOpenIsFreedOnceItWasClosed() throws Exception {
    withOpenedMemory(
        (exchange, memory) -> {
          if (exchange.rank() == 1) {
            Until.holds("a close of the peer", () -> fake.calls("cuIpcCloseMemHandle").size() == 1);
            assertThat(fake.calls("cuMemFree")).isEmpty();
          }
          memory.close();
        });
    assertThat(fake.calls("cuMemFree")).hasSize(2);
  }

  @Test
  void whatAnotherProcessDoesNotCloseIsLeft() throws Exception {
    long[] left = new long[1];
    withOpenedMemory(
        (exchange, memory) -> {
          if (exchange.rank() == 0) {
            assertThat(exchange.awaitLeft("what nobody leaves", Duration.ofMillis(1))).isFalse();
            left[0] = memory.address(0);
            memory.close();
            assertThat(fake.calls("cuMemFree")).isEmpty();
          }
          exchange.barrier(Ranks.soon());
          memory.close();
        });
    assertThat(fake.calls("cuMemFree")).hasSize(1);
    try (DeviceContext context = new DeviceContext(fake.driver(), 0)) {
      context.enter();
      fake.driver().memory().free(left[0]);
    }
    assertThat(store.listKeys()).hasSize(2).allMatch(key -> key.startsWith("test/left/"));
    store.listKeys().forEach(store::deleteKey);
  }

  private static MemorySegment first(PeerMemory memory, int rank) {
    return MemorySegment.ofAddress(memory.address(rank)).reinterpret(Integer.BYTES);
  }
}
