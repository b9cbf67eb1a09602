package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.DeviceAttribute;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Shares memory between ranks that take each other for ranks of other processes. */
class PeerMemoryTest {
  private static final List<PeerInfo> RANKS =
      List.of(
          new PeerInfo("host", "process 0", "0000:1B:00.0", false, 132, "", ""),
          new PeerInfo("host", "process 1", "0000:1C:00.0", false, 132, "", ""));

  private final FakeCudaDriver fake = new FakeCudaDriver(2);
  private final HashStore store = new HashStore();
  @TempDir private Path directory;
  private Runnable makeRoom = () -> {};

  @AfterEach
  void nothingIsLeft() {
    assertThat(fake.living()).isEmpty();
    assertThat(store.listKeys()).isEmpty();
    fake.close();
  }

  /** The code of a rank that has connected to the other one. */
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
            body.run(
                new PeerWorld(
                    context, stream, exchange, channel, RANKS, sharing, _ -> makeRoom.run()));
            context.enter();
            fake.driver().streams().destroy(stream);
          }
          return null;
        });
  }

  /** The ranks are in step afterwards: none takes a descriptor from an earlier attempt. */
  @Test
  void whatOneRankCannotPassIsAFailureOnAllRanks() throws Exception {
    fake.failOn("cuMemExportToShareableHandle", 1, 801);
    inWorld(
        Sharing.FD,
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

  private static void shares(PeerWorld world) {
    StoreExchange exchange = world.exchange();
    try (PeerMemory memory = PeerMemory.allocate(world, 64, 0, Ranks.soon())) {
      first(memory, exchange.rank()).set(ValueLayout.JAVA_INT, 0, 5 + exchange.rank());
      exchange.barrier(Ranks.soon());
      int peer = 1 - exchange.rank();
      assertThat(first(memory, peer).get(ValueLayout.JAVA_INT, 0)).isEqualTo(5 + peer);
      exchange.barrier(Ranks.soon());
    }
  }

  private List<String> imports() {
    return fake.calls("cuMemImportFromShareableHandle");
  }

  private static final String BY_FABRIC = "cuMemImportFromShareableHandle fabric";

  @Test
  void fabricHandlesAreUsedWhereAllRanksHaveThem() throws Exception {
    inWorld(Sharing.VMM, PeerMemoryTest::shares);
    assertThat(imports()).containsExactly(BY_FABRIC, BY_FABRIC);
    assertThat(fake.calls("cuMemCreate"))
        .containsExactly(
            "cuMemCreate 2097152 POSIX_FD_AND_FABRIC", "cuMemCreate 2097152 POSIX_FD_AND_FABRIC");
  }

  @Test
  void descriptorsAreUsedWhereNoDeviceReportsFabricHandlesOrTheyAreNotWanted() throws Exception {
    fake.setAttribute(DeviceAttribute.FABRIC_HANDLES, 0);
    inWorld(Sharing.VMM, PeerMemoryTest::shares);
    fake.setAttribute(DeviceAttribute.FABRIC_HANDLES, 1);
    inWorld(Sharing.FD, PeerMemoryTest::shares);
    assertThat(imports()).hasSize(4).doesNotContain(BY_FABRIC);
    assertThat(fake.calls("cuMemExportToShareableHandle"))
        .hasSize(4)
        .noneMatch(call -> call.endsWith("fabric"));
  }

  /** The first call that fails is one for fabric handles, on one rank. */
  @ParameterizedTest
  @CsvSource({
    "cuMemCreate, 800, 0",
    "cuMemExportToShareableHandle, 801, 0",
    "cuMemImportFromShareableHandle, 800, 1"
  })
  void descriptorsAreUsedWhereOneRankHasNoFabricHandle(String call, int code, int imported)
      throws Exception {
    fake.failOn(call, 1, code);
    inWorld(Sharing.VMM, PeerMemoryTest::shares);
    assertThat(imports().stream().filter(each -> !each.equals(BY_FABRIC))).hasSize(2);
    assertThat(imports().stream().filter(BY_FABRIC::equals).count())
        .isBetween((long) imported, 2L * imported);
  }

  @ParameterizedTest
  @EnumSource
  void aFullDeviceIsAskedAgainOnceRoomWasMade(Sharing sharing) throws Exception {
    fake.memory().setCapacity(0);
    makeRoom = () -> fake.memory().setCapacity(1 << 30);
    inWorld(sharing, PeerMemoryTest::shares);
  }

  @Test
  void aDeviceThatStaysFullIsNotAskedWithoutFabricHandles() throws Exception {
    fake.memory().setCapacity(0);
    inWorld(
        Sharing.VMM,
        world ->
            assertThatThrownBy(() -> PeerMemory.allocate(world, 64, 0, Ranks.soon()))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY"));
    assertThat(fake.calls("cuMemCreate"))
        .hasSize(4)
        .allMatch(call -> call.endsWith("POSIX_FD_AND_FABRIC"));
  }

  @Test
  void aMappingThatFailsIsTriedByDescriptors() throws Exception {
    fake.failOn("cuMemMap", 3, 1);
    inWorld(Sharing.VMM, PeerMemoryTest::shares);
    assertThat(fake.calls("cuMemMap")).hasSize(6);
  }

  /** What a rank does with memory that it and a rank in another process have opened. */
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
