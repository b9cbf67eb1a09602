package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

/** Tests batches of all element types. */
class RowBatchesTest {
  @Test
  void lastBatchHasTheRest() {
    Iterator<float[]> rows =
        List.of(new float[] {1, 2}, new float[] {3, 4}, new float[] {5, 6}).iterator();
    RowBatches<float[]> batches = RowBatches.ofFloats(rows, 2, 2);
    Tensor first = batches.next();
    Tensor second = batches.next();
    assertThat(first.shape()).containsExactly(2, 2);
    assertThat(first.toFloatArray()).containsExactly(1, 2, 3, 4);
    assertThat(second.shape()).containsExactly(1, 2);
    assertThat(second.toFloatArray()).containsExactly(5, 6);
    assertThat(batches.hasNext()).isFalse();
    assertThatThrownBy(batches::next).isInstanceOf(NoSuchElementException.class);
  }

  @Test
  void doublesKeepTheirBits() {
    Iterator<double[]> rows = List.of(new double[] {0.1, -0.0, Math.PI}).iterator();
    Tensor batch = RowBatches.ofDoubles(rows, 3, 10).next();
    assertThat(batch.dtype()).isEqualTo(DType.FLOAT64);
    assertThat(batch.toDoubleArray()).containsExactly(0.1, -0.0, Math.PI);
  }

  @Test
  void writerTakesAnyRow() {
    RowBatches<String> batches =
        RowBatches.of(
            List.of("a", "bc").iterator(),
            DType.INT32,
            1,
            4,
            (row, target) -> target.set(ValueLayout.JAVA_INT, 0, row.length()));
    assertThat(batches.next().toIntArray()).containsExactly(1, 2);
  }

  @Test
  void rowsOfAnotherLengthAreRefused() {
    RowBatches<float[]> batches =
        RowBatches.ofFloats(List.<float[]>of(new float[] {1, 2, 3}).iterator(), 2, 2);
    assertThatThrownBy(batches::next)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("a row has 3 elements, not 2");
  }

  @Test
  void sizesMustBePositive() {
    Iterator<float[]> none = List.<float[]>of().iterator();
    assertThatThrownBy(() -> RowBatches.ofFloats(none, 0, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("columns and batchRows must be at least 1, not 0 and 2");
  }
}
