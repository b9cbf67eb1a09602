package dev.tutti.peer.libtorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/**
 * Ranks 0 and 1 hold −5 2 −2 5 1 … and −3 4 0 −4 3 …; the results below are worked out by hand from
 * these.
 */
class PeerOracleTest {
  @Test
  void reductionsCombineAllRanks() {
    assertThat(two("allreduce int32 sum 5", 0)).isEqualTo("-8 6 -2 1");
    assertThat(two("allreduce float32 avg 4", 1)).isEqualTo("-4.0 3.0 -1.0 0.5");
    assertThat(two("allreduce int32 min 4", 0)).isEqualTo("-5 2 -2 -4");
    assertThat(two("allreduce int32 max 4", 0)).isEqualTo("-3 4 0 5");
    assertThat(two("allreduce int32 product 4", 0)).isEqualTo("1 4 4 2");
    assertThat(two("allreduce int32 band 4", 0)).isEqualTo("-7 0 0 4");
    assertThat(two("allreduce int32 bor 4", 0)).isEqualTo("-1 6 -2 -3");
    assertThat(two("allreduce int32 bxor 4", 0)).isEqualTo("6 6 -2 -7");
    assertThat(two("reduce int32 sum 4 root=1", 0)).isEmpty();
    assertThat(two("reduce int32 sum 4 root=1", 1)).isEqualTo("-8 6 -2 1");
  }

  @Test
  void reduceScatterKeepsTheSliceOfTheRank() {
    assertThat(two("reduce_scatter int32 sum 2", 0)).isEqualTo("-8 6");
    assertThat(two("reduce_scatter_base int32 sum 2", 1)).isEqualTo("-2 1");
    assertThat(two("reduce_scatter_tensor_coalesced int32 sum 1,1", 1)).isEqualTo("6 1");
  }

  @Test
  void dataMovesUnchanged() {
    assertThat(two("broadcast int32 3 root=1", 0)).isEqualTo("-3 4 0");
    assertThat(two("allgather int32 2", 0)).isEqualTo("-5 2 -3 4");
    assertThat(two("allgather_into_tensor_coalesced int32 1,1", 0)).isEqualTo("-5 -3 2 4");
    assertThat(two("gather int32 2 root=0", 0)).isEqualTo("-5 2 -3 4");
    assertThat(two("gather int32 2 root=0", 1)).isEmpty();
    assertThat(two("scatter int32 2 root=1", 1)).isEqualTo("0 -4");
    assertThat(two("alltoall_base int32 1", 1)).isEqualTo("2 4");
    assertThat(two("alltoall_base int32 splits=1,2;3,0", 1)).isEqualTo("2 -2");
    assertThat(two("alltoall_base int32 splits=1,2;3,0", 0)).isEqualTo("-5 -3 4 0");
    assertThat(two("recv 1 9 int32 2", 0)).isEqualTo("-3 4");
    assertThat(two("send 1 9 int32 2", 0)).isEmpty();
  }

  @Test
  void sparseRowsAddUpDense() {
    assertThat(two("allreduce_sparse int32 sum 4 1 2", 0)).isEqualTo("-1 -3 0 2");
  }

  @Test
  void whatDoesNotFollowFromTheLineIsRefused() {
    assertThatThrownBy(() -> two("allreduce float32 sum 4 data=fraction", 0))
        .hasMessageContaining("rounding");
    assertThatThrownBy(() -> two("recvany 1 float32 4", 0)).hasMessageContaining("recvany");
  }

  private static String two(String line, int rank) {
    PeerType type = line.contains("float32") ? PeerType.FLOAT32 : PeerType.INT32;
    return String.join(" ", PeerData.head(type, PeerOracle.expected(line, rank, 2), 4));
  }
}
