package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import org.junit.jupiter.api.Test;

class IndexBoundsTest {
  @Test
  void theFirstIndexOutsideIsFoundInEveryBlock() {
    int count = 2500;
    for (int at : new int[] {0, 1023, 1024, 2047, 2048, 2499}) {
      for (long bad : new long[] {-1, 7, Long.MIN_VALUE, Long.MAX_VALUE}) {
        Tensor indices = Tensor.allocate(DType.INT64, 2, count).fill(6);
        assertThat(IndexBounds.firstOutside(indices, 1, 7)).isEqualTo(-1);
        indices.setLong(count + at, bad);
        indices.setLong(2L * count - 1, bad);
        assertThat(IndexBounds.firstOutside(indices, 0, 7)).isEqualTo(-1);
        assertThat(IndexBounds.firstOutside(indices, 1, 7)).isEqualTo(at);
      }
    }
    assertThat(IndexBounds.firstOutside(Tensor.allocate(DType.INT64, 1, 0), 0, 0)).isEqualTo(-1);
  }
}
