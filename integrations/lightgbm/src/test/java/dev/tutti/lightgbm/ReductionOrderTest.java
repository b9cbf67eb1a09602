package dev.tutti.lightgbm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ReductionOrderTest {
  /** Formatted as {@code (into+from)}, with the numbers of the ranks. */
  private static String text(int rank, int size, long bytes) {
    List<String> parts = new ArrayList<>(IntStream.range(0, size).mapToObj(i -> "" + i).toList());
    int result =
        ReductionOrder.reduce(
            rank,
            size,
            bytes,
            (from, into) -> parts.set(into, "(" + parts.get(into) + "+" + parts.get(from) + ")"));
    return parts.get(result);
  }

  /** Traced by hand through LightGBM's recursive halving. */
  @ParameterizedTest
  @CsvSource({
    "0, 1, 0",
    "1, 2, (1+0)",
    "0, 3, (0+(1+2))",
    "2, 3, ((1+2)+0)",
    "0, 4, ((0+2)+(1+3))",
    "3, 4, ((3+1)+(2+0))",
    "1, 5, ((1+(3+4))+(0+2))",
    "4, 5, (((3+4)+1)+(2+0))",
    "5, 6, (((4+5)+1)+((2+3)+0))"
  })
  void halvesRecursively(int rank, int size, String expected) {
    assertThat(text(rank, size, 100)).isEqualTo(expected);
  }

  @ParameterizedTest
  @CsvSource({"0, 3, (0+(2+1))", "1, 3, (1+(0+2))", "2, 5, (2+(1+(0+(4+3))))"})
  void goesRoundForLargeBlocks(int rank, int size, String expected) {
    assertThat(text(rank, size, ReductionOrder.RING_BYTES)).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 13, 16})
  void takesEachPartOnce(int size) {
    for (int rank = 0; rank < size; rank++) {
      for (long bytes : new long[] {1, ReductionOrder.RING_BYTES}) {
        assertThat(text(rank, size, bytes).replaceAll("[()]", "").split("\\+"))
            .containsExactlyInAnyOrder(
                IntStream.range(0, size).mapToObj(i -> "" + i).toArray(String[]::new));
      }
    }
  }
}
