package dev.tutti.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Compares what Java writes with the offsets in protocol.cuh. */
class StructuresTest {
  private static MemorySegment words(int bytes) {
    return MemorySegment.ofArray(new long[bytes / 8]);
  }

  private static long word(MemorySegment memory, long offset) {
    return memory.get(ValueLayout.JAVA_LONG, offset);
  }

  /**
   * Kernels that wait for each other must all be resident on the device, one block per
   * multiprocessor.
   */
  @Test
  void blocksFitOnTheSmallestDevice() {
    assertThat(ChannelLayout.lanes(128, 132, 1)).isEqualTo(128);
    assertThat(ChannelLayout.lanes(128, 132, 2)).isEqualTo(64);
    assertThat(ChannelLayout.lanes(128, 108, 1)).isEqualTo(104);
    assertThat(ChannelLayout.lanes(128, 108, 8)).isEqualTo(12);
    assertThat(ChannelLayout.lanes(128, 58, 2)).isEqualTo(26);
    assertThat(ChannelLayout.lanes(4, 132, 3)).isEqualTo(2);
    assertThat(ChannelLayout.lanes(1, 4, 1)).isEqualTo(2);
  }

  private static int half(MemorySegment memory, long offset) {
    return memory.get(ValueLayout.JAVA_INT, offset);
  }

  @Test
  void channelHasItsFields() {
    MemorySegment memory = words(ChannelLayout.CHANNEL_BYTES);
    new ChannelLayout(2, 4, 512, 4096, 1024)
        .writeChannel(memory, 1, 100, 200, new long[] {300, 400});
    assertThat(memory.toArray(ValueLayout.JAVA_INT))
        .startsWith(1, 2, 4, 512, 4096, 1024, 100, 0, 200, 0, 300, 0, 400, 0, 0, 0)
        .hasSize(28);
    ChannelLayout.writeLanes(memory, 2, 4);
    assertThat(memory.toArray(ValueLayout.JAVA_INT)).startsWith(1, 2, 4).endsWith(0, 2, 4);
  }

  @Test
  void areaHoldsFlagsPacketsAndChunks() {
    // (6 kinds x 4 + 8) x 4 lanes x 8 peers; 3 sections x 2 parities x 4 lanes x 2 ranks x 512 x
    // 16;
    // 2 sections x 4 slots x 4 lanes x 2 ranks x 4096; 2 sections x 2 parities x 4 lanes x 2 ranks
    // x 1024 x 16.
    ChannelLayout layout = new ChannelLayout(2, 4, 512, 4096, 1024);
    assertThat(layout.areaBytes()).isEqualTo(1024L + 393_216L + 262_144L + 524_288L);
    assertThat(layout.stateBytes()).isEqualTo(1024);
    assertThat(layout.packetCapacity(4)).isEqualTo(24_576);
    assertThat(layout.fullCapacity()).isEqualTo(65_536);
    assertThat(layout.messageCapacity()).isEqualTo(16_384);
  }

  @Test
  void slotsOfFullPacketsTakePartsOfEightMebibytes() {
    for (int ranks = 2; ranks <= ChannelLayout.MAX_RANKS; ranks++) {
      assertThat(ChannelLayout.ofRanks(ranks).fullCapacity())
          .isBetween((8L << 20) / ranks, (8L << 20) / ranks + (1 << 20));
    }
  }

  @Test
  void channelRefusesWhatDoesNotFit() {
    assertThatIllegalArgumentException().isThrownBy(() -> new ChannelLayout(9, 4, 512, 4096, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new ChannelLayout(2, 3, 512, 4096, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new ChannelLayout(2, 4, 511, 4096, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new ChannelLayout(2, 4, 512, 4100, 0));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ChannelLayout(2, 4, 512, 4096, 513))
        .withMessageContaining("513");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () ->
                ChannelLayout.ofRanks(2)
                    .writeChannel(words(ChannelLayout.CHANNEL_BYTES), 2, 0, 0, new long[] {1, 2}));
  }

  @Test
  void reduceCallHasItsFields() {
    ReduceCall call =
        new ReduceCall(words(ReduceCall.BYTES))
            .allReduce(10, 20, 1000, 3)
            .op(ReduceOp.premulSum(0.5))
            .timeoutNanos(7)
            .chunk(2048);
    MemorySegment memory = call.memory();
    assertThat(memory.asSlice(0, 32).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(10, 20, 1000, 336);
    assertThat(memory.get(ValueLayout.JAVA_DOUBLE, 32)).isEqualTo(0.5);
    assertThat(word(memory, 40)).isEqualTo(7);
    assertThat(memory.asSlice(48, 16).toArray(ValueLayout.JAVA_INT)).containsExactly(8, 7, 7, 2048);
    assertThat(word(call.shared(2, 4096, 3).memory(), 64 + 16)).isEqualTo(4099);

    call.reduceScatter(10, 20, 6, 4);
    assertThat(word(memory, 64 + 16)).as("the call before was given shared memory").isZero();
    assertThat(word(memory, 16)).isEqualTo(24);
    assertThat(word(memory, 24)).isEqualTo(6);
    assertThat(half(memory, 56)).isZero();
    call.reduceScatter(10, 20, new long[] {8, 0, 24});
    assertThat(memory.asSlice(0, 32).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(10, 20, 32, 24);
    assertThat(memory.asSlice(64, 32).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(0, 8 << 4, 8 << 4, 0);
    assertThat(half(memory, 52)).isEqualTo(7);
    assertThat(half(memory, 56)).isZero();
    call.reduce(10, 20, 64, 4, 2);
    assertThat(half(memory, 56)).isEqualTo(4);
    call.broadcast(10, 64, 4, 1);
    assertThat(half(memory, 52)).isEqualTo(2);
    assertThat(half(memory, 56)).isEqualTo(13);
  }

  @Test
  void exchangeCallHasItsFields() {
    MemorySegment memory = words(ExchangeCall.BYTES);
    new ExchangeCall(memory).begin(1024, 5).send(1, 11, 12).receive(7, 13, 14);
    assertThat(word(memory, 8)).isEqualTo(11);
    assertThat(word(memory, 128 + 8)).isEqualTo(12);
    assertThat(word(memory, 64 + 56)).isEqualTo(13);
    assertThat(word(memory, 192 + 56)).isEqualTo(14);
    assertThat(word(memory, 256)).isEqualTo(1024);
    assertThat(word(memory, 264)).isEqualTo(5);
  }

  @Test
  void statusSaysWhatEndedTheWait() {
    assertThat(ChannelStatus.of(0)).isEqualTo(new ChannelStatus(ChannelStatus.Outcome.OK, 0, 0));
    assertThat(ChannelStatus.of(2 | 5 << 8 | 17 << 16))
        .isEqualTo(new ChannelStatus(ChannelStatus.Outcome.TIMED_OUT, 5, 17));
    assertThat(ChannelStatus.of(3).outcome()).isEqualTo(ChannelStatus.Outcome.ABORTED);
  }
}
