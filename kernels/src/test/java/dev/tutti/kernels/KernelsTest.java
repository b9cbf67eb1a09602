package dev.tutti.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.kernels.AllReduceLimits.Algorithm;
import org.junit.jupiter.api.Test;

class KernelsTest {
  private static final ChannelLayout LAYOUT = ChannelLayout.ofRanks(4);

  @Test
  void findsKernelsByTypeAndOperator() {
    assertThat(Kernels.oneShot(DType.BFLOAT16, ReduceOp.Kind.AVG).name())
        .isEqualTo("tutti_one_shot_bf16_sum");
    assertThat(Kernels.twoShot(DType.INT64, ReduceOp.Kind.BXOR).name())
        .isEqualTo("tutti_two_shot_i64_other");
    assertThat(Kernels.chunks(DType.FLOAT32, ReduceOp.Kind.MIN).name())
        .isEqualTo("tutti_chunks_f32_other");
    assertThat(Kernels.all()).extracting(Kernel::name).doesNotHaveDuplicates();
  }

  @Test
  void refusesWhatNoKernelReduces() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Kernels.oneShot(DType.COMPLEX64, ReduceOp.Kind.SUM))
        .withMessageContaining("complex64");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Kernels.twoShot(DType.FLOAT32, ReduceOp.Kind.BAND))
        .withMessageContaining("BAND is not defined on float32");
    assertThat(Kernels.isReducible(DType.BOOL)).isFalse();
  }

  /** A lane has one place per packet: a launch that needs more would write past its slots. */
  @Test
  void launchesStayWithinLanesAndSlots() {
    for (DType dtype : new DType[] {DType.INT32, DType.INT64}) {
      int payload = ChannelLayout.packetPayload(dtype.byteSize());
      long capacity = LAYOUT.packetCapacity(dtype.byteSize());
      launchesStayWithin(dtype, payload, capacity, LAYOUT.packetSlots());
    }
    launchesStayWithin(
        DType.FLOAT32, ChannelLayout.FULL_PAYLOAD, LAYOUT.fullCapacity(), LAYOUT.fullSlots());
  }

  private static void launchesStayWithin(DType dtype, int payload, long capacity, int slots) {
    long bytes = 8;
    while (bytes < capacity) {
      bytes = Math.min(bytes + 8 + bytes / 7 / 8 * 8, capacity);
      Launch launch = Kernels.oneShot(dtype, ReduceOp.Kind.SUM).launch(bytes, LAYOUT);
      assertThat(launch.grid()).isBetween(1, LAYOUT.lanes());
      assertThat(launch.block()).isBetween(32, Kernels.MAX_THREADS);
      long packets = (bytes + payload - 1) / payload;
      long threads = (long) launch.grid() * launch.block();
      assertThat((packets + threads - 1) / threads * launch.block()).isLessThanOrEqualTo(slots);
    }
  }

  @Test
  void launchesMatchTheMeasuredTable() {
    Kernel oneShot = Kernels.oneShot(DType.BFLOAT16, ReduceOp.Kind.SUM);
    assertThat(oneShot.launch(1024, LAYOUT)).isEqualTo(new Launch(1, 128));
    assertThat(oneShot.launch(16384, LAYOUT)).isEqualTo(new Launch(8, 128));
    assertThat(oneShot.launch(262144, LAYOUT)).isEqualTo(new Launch(128, 128));
    assertThat(oneShot.launch(16384, LAYOUT)).isSameAs(oneShot.launch(16384, LAYOUT));
    Kernel twoShot = Kernels.twoShot(DType.BFLOAT16, ReduceOp.Kind.SUM);
    assertThat(twoShot.launch(524288, LAYOUT)).isEqualTo(new Launch(64, 128));
    assertThat(twoShot.launch(2 << 20, LAYOUT)).isEqualTo(new Launch(128, 256));
    assertThat(twoShot.launch(8 << 20, LAYOUT)).isEqualTo(new Launch(128, 256));
    Kernel most = Kernels.oneShot(DType.BFLOAT16, ReduceOp.Kind.MAX);
    assertThat(most.launch(16384, LAYOUT)).isEqualTo(new Launch(11, 128));
    Kernel chunks = Kernels.chunks(DType.BFLOAT16, ReduceOp.Kind.SUM);
    assertThat(chunks.launch(4 << 20, LAYOUT)).isEqualTo(new Launch(128, 256));
    assertThat(chunks.launch(1L << 30, LAYOUT)).isEqualTo(new Launch(128, 512));
    assertThat(Kernels.streamBlock().launch(0, LAYOUT)).isEqualTo(new Launch(1, 1));
    assertThat(Kernels.exchange().launch(1024, LAYOUT)).isEqualTo(new Launch(1, 128));
  }

  @Test
  void limitsChooseTheMeasuredAlgorithm() {
    assertThat(choice(128 << 10, ReduceOp.Kind.SUM)).isEqualTo(Algorithm.ONE_SHOT);
    assertThat(choice(256 << 10, ReduceOp.Kind.SUM)).isEqualTo(Algorithm.TWO_SHOT);
    assertThat(choice(8 << 20, ReduceOp.Kind.SUM)).isEqualTo(Algorithm.TWO_SHOT);
    assertThat(choice((8 << 20) + 2, ReduceOp.Kind.SUM)).isEqualTo(Algorithm.CHUNKS);
    assertThat(choice(64 << 20, ReduceOp.Kind.SUM)).isEqualTo(Algorithm.CHUNKS);
    assertThat(choice(128 << 10, ReduceOp.Kind.MAX)).isEqualTo(Algorithm.ONE_SHOT);
    assertThat(choice(2 << 20, ReduceOp.Kind.MAX)).isEqualTo(Algorithm.TWO_SHOT);
    assertThat(choice(4 << 20, ReduceOp.Kind.MAX)).isEqualTo(Algorithm.CHUNKS);
    Launch launch = Kernels.chunks(DType.BFLOAT16, ReduceOp.Kind.SUM).launch(4 << 20, LAYOUT);
    assertThat(AllReduceLimits.chunkBytes(4 << 20, launch, LAYOUT)).isEqualTo(8192);
    assertThat(AllReduceLimits.chunkBytes(1, new Launch(1, 256), LAYOUT)).isEqualTo(16);
    assertThat(AllReduceLimits.chunkBytes(1L << 30, new Launch(128, 512), LAYOUT)).isEqualTo(32768);
  }

  @Test
  void pciePeersHaveLimitsOfTheirOwn() {
    assertThat(AllReduceLimits.of(4, PeerLinks.SWITCH)).isEqualTo(AllReduceLimits.ofRanks(4));
    assertThat(AllReduceLimits.of(4, PeerLinks.DIRECT)).isEqualTo(AllReduceLimits.ofRanks(4));
    assertThat(AllReduceLimits.of(4, PeerLinks.UNKNOWN)).isEqualTo(AllReduceLimits.ofRanks(4));
    assertThat(AllReduceLimits.of(4, PeerLinks.PCIE))
        .isEqualTo(new AllReduceLimits(16 << 10, 1 << 20));
    assertThat(AllReduceLimits.of(2, PeerLinks.PCIE))
        .isEqualTo(new AllReduceLimits(256 << 10, 1 << 20));
  }

  private static Algorithm choice(long bytes, ReduceOp.Kind op) {
    return AllReduceLimits.ofRanks(4).choose(bytes, DType.BFLOAT16, op, LAYOUT);
  }

  /** A narrow channel has fewer slots than the limits allow packets. */
  @Test
  void limitsStayWithinTheSlots() {
    ChannelLayout narrow = new ChannelLayout(2, 2, 512, 2048, 512);
    assertThat(narrow.packetCapacity(4)).isEqualTo(12_288);
    assertThat(narrowChoice(12_288, DType.INT32, narrow)).isEqualTo(Algorithm.ONE_SHOT);
    assertThat(narrowChoice(12_304, DType.INT32, narrow)).isEqualTo(Algorithm.TWO_SHOT);
    assertThat(narrowChoice(24_580, DType.INT32, narrow)).isEqualTo(Algorithm.CHUNKS);
    assertThat(narrow.fullCapacity()).isEqualTo(16_384);
    assertThat(narrowChoice(16_384, DType.FLOAT32, narrow)).isEqualTo(Algorithm.ONE_SHOT);
    assertThat(narrowChoice(32_768, DType.FLOAT32, narrow)).isEqualTo(Algorithm.TWO_SHOT);
    assertThat(narrowChoice(32_772, DType.FLOAT32, narrow)).isEqualTo(Algorithm.CHUNKS);
  }

  private static Algorithm narrowChoice(long bytes, DType dtype, ChannelLayout narrow) {
    return AllReduceLimits.ofRanks(2).choose(bytes, dtype, ReduceOp.Kind.SUM, narrow);
  }
}
