package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.OpType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests how algorithms are chosen and how the choice is written. */
class AlgorithmTableTest {
  @Test
  void choosesByBytes() {
    AlgorithmTable table =
        AlgorithmTable.DEFAULT.with("allReduce = recursive-doubling:1K, halving-doubling:1M, ring");
    assertThat(table.choose(OpType.ALL_REDUCE, 0, 4)).isEqualTo(Algorithm.RECURSIVE_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1024, 4)).isEqualTo(Algorithm.RECURSIVE_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1025, 4)).isEqualTo(Algorithm.HALVING_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1 << 20, 4)).isEqualTo(Algorithm.HALVING_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, (1 << 20) + 1, 4)).isEqualTo(Algorithm.RING);
    assertThat(table.choose(OpType.ALL_REDUCE, Long.MAX_VALUE, 4)).isEqualTo(Algorithm.RING);
  }

  @Test
  void leavesOtherOperationsAsTheyAre() {
    AlgorithmTable table = AlgorithmTable.DEFAULT.with("allReduce=ring");
    assertThat(table.choose(OpType.BROADCAST, 1 << 30, 4)).isEqualTo(Algorithm.CHAIN);
    assertThat(table.toString()).contains("allReduce=ring;").contains("broadcast=binomial:");
    assertThat(AlgorithmTable.DEFAULT.toString()).doesNotContain("allReduce=ring;");
  }

  @Test
  void aLimitMayDifferWhereRanksAreNoPowerOfTwo() {
    AlgorithmTable table = AlgorithmTable.DEFAULT.with("allReduce=halving-doubling:1M/1K,ring");
    assertThat(table.choose(OpType.ALL_REDUCE, 1 << 20, 8)).isEqualTo(Algorithm.HALVING_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1025, 6)).isEqualTo(Algorithm.RING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1024, 6)).isEqualTo(Algorithm.HALVING_DOUBLING);
  }

  @Test
  void ranksThatShareCoresTakeFewerSteps() {
    assertThat(AlgorithmTable.DEFAULT.choose(OpType.ALL_REDUCE, 4 << 20, 4))
        .isEqualTo(Algorithm.PIPELINED_HALVING_DOUBLING);
    AlgorithmTable table = AlgorithmTable.DEFAULT.whereRanksShareCores();
    assertThat(table.choose(OpType.ALL_REDUCE, 4 << 20, 4)).isEqualTo(Algorithm.HALVING_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1 << 30, 4))
        .isEqualTo(Algorithm.PIPELINED_HALVING_DOUBLING);
    assertThat(table.choose(OpType.ALL_REDUCE, 1 << 30, 6)).isEqualTo(Algorithm.RING);
    assertThat(AlgorithmTable.DEFAULT.with(table.toString())).hasToString(table.toString());
    AlgorithmTable chosen = AlgorithmTable.DEFAULT.with("allReduce=ring;allGather=bruck");
    assertThat(chosen.whereRanksShareCores()).hasToString(chosen.toString());
  }

  @Test
  void readsWhatItWrites() {
    String text = AlgorithmTable.DEFAULT.with("allGather=bruck:1000/2K,ring").toString();
    assertThat(AlgorithmTable.DEFAULT.with(text)).hasToString(text);
    assertThat(text).contains("allGather=bruck:1000/2K,ring");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "allreduce=ring|no algorithm can be chosen for 'allreduce', only for broadcast, allReduce",
        "allReduce=bruck|'bruck' is not an algorithm for allReduce; choose from ring",
        "allReduce|names no algorithm",
        "allReduce=ring:1K|each algorithm but the last needs a size",
        "allReduce=ring,ring|each algorithm but the last needs a size",
        "allReduce=ring:x,ring|expected a number of bytes such as",
      })
  void refusesWhatIsUnclear(String text, String message) {
    assertThatThrownBy(() -> AlgorithmTable.DEFAULT.with(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }
}
