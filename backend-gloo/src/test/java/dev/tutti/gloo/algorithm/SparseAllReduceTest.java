package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.spi.SparseSum;
import java.util.List;
import org.junit.jupiter.api.Test;

class SparseAllReduceTest {
  private static Tensor sparse(DType dtype, double value) {
    Tensor indices = Tensor.allocate(DType.INT64, 1, 1);
    return Tensor.sparse(indices, Tensor.allocate(dtype, 1).fill(value), 3);
  }

  /** A rank of PyTorch adds the tensors of the ranks in their type, one after the other. */
  @Test
  void ranksBesidePytorchRoundAfterEachRank() {
    List<Tensor> halves =
        List.of(sparse(DType.FLOAT16, 2048), sparse(DType.FLOAT16, 1), sparse(DType.FLOAT16, 1));
    assertThat(SparseAllReduce.sumByRank(halves).values().toDoubleArray()).containsExactly(2048);
    assertThat(SparseSum.of(halves).values().toDoubleArray()).containsExactly(2050);
  }
}
