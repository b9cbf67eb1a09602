package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.SparseSum;
import dev.tutti.gloo.transport.TestOperation;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class SparseAllReduceTest {
  private static Tensor sparse(DType dtype, double value) {
    Tensor indices = Tensor.allocate(DType.INT64, 1, 1);
    return Tensor.sparse(indices, Tensor.allocate(dtype, 1).fill(value), 3);
  }

  /** A PyTorch rank adds the tensors of the ranks one after the other, in their own type. */
  @Test
  void ranksBesidePytorchRoundAfterEachRank() {
    List<Tensor> halves =
        List.of(sparse(DType.FLOAT16, 2048), sparse(DType.FLOAT16, 1), sparse(DType.FLOAT16, 1));
    assertThat(SparseAllReduce.sumByRank(halves).values().toDoubleArray()).containsExactly(2048);
    assertThat(SparseSum.of(halves).values().toDoubleArray()).containsExactly(2050);
  }

  /** Acts as rank 1, whose entries equal this rank's except for one index. */
  private static SparseAllReduce.Exchange besideIndex(long index) {
    return new SparseAllReduce.Exchange() {
      private boolean hasIndices;

      @Override
      public void gather(MemorySegment memory, long bytes) {
        MemorySegment.copy(memory, 0, memory, bytes, bytes);
      }

      @Override
      public void gatherUneven(MemorySegment memory, long[] bytes) {
        MemorySegment.copy(memory, 0, memory, bytes[0], bytes[1]);
        if (!hasIndices) {
          memory.set(ValueLayout.JAVA_LONG_UNALIGNED, bytes[0], index);
          hasIndices = true;
        }
      }
    };
  }

  @Test
  void aRankThatSendsAnIndexOutsideIsNamed() throws Exception {
    SparseAllReduce sums = new SparseAllReduce(0, 2);
    for (boolean asPytorch : new boolean[] {false, true}) {
      Tensor own = sparse(DType.FLOAT16, 3);
      Tensor sum =
          sums.run(new TestOperation(Duration.ofSeconds(10)), own, asPytorch, besideIndex(0));
      assertThat(sum.values().toDoubleArray()).containsExactly(6);
      for (long bad : new long[] {-1, 3}) {
        assertThatThrownBy(
                () ->
                    sums.run(
                        new TestOperation(Duration.ofSeconds(10)),
                        own,
                        asPytorch,
                        besideIndex(bad)))
            .isInstanceOfSatisfying(
                PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(1))
            .hasMessage("rank 1 sent index " + bad + " in a dimension of size 3");
      }
    }
  }
}
