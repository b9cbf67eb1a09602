package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SegmentsTest {
  private static long[] lengths(Segments segments) {
    return LongStream.range(0, segments.count())
        .map(i -> segments.length(segments.offset(i)))
        .toArray();
  }

  @Test
  void cutsAsGlooDoes() {
    Segments ten = Segments.forAllReduce(40, 4, 2);
    assertThat(ten).isEqualTo(new Segments(40, 12, 4, 2));
    assertThat(lengths(ten)).containsExactly(12, 12, 12, 4);
    Segments one = Segments.forAllReduce(4, 4, 2);
    assertThat(lengths(one)).containsExactly(4, 0, 0, 0);
    assertThat(Segments.forAllReduce(10_000_000, 4, 2))
        .isEqualTo(new Segments(10_000_000, 1_000_000, 10, 5));
    assertThat(Segments.forReduce(40, 4, 2)).isEqualTo(new Segments(40, 12, 4, 2));
    assertThat(Segments.forReduce(10_000_000, 4, 2))
        .isEqualTo(new Segments(10_000_000, 1 << 20, 10, 5));
  }

  @ParameterizedTest
  @CsvSource({"1,2", "4,3", "8,5", "2,4", "8,7"})
  void coversEveryByteOnce(int elementBytes, int size) {
    for (long count : new long[] {1, 2, 3, 100, 1_000_003, 50_000_000}) {
      long total = count * elementBytes;
      for (Segments segments :
          new Segments[] {
            Segments.forAllReduce(total, elementBytes, size),
            Segments.forReduce(total, elementBytes, size)
          }) {
        assertThat(LongStream.of(lengths(segments)).sum()).isEqualTo(total);
        assertThat(segments.count()).isEqualTo(segments.perRank() * size);
        assertThat(segments.perRank()).isGreaterThanOrEqualTo(2);
        assertThat(segments.bytes()).isLessThanOrEqualTo(1 << 20);
        assertThat(segments.bytes() % elementBytes).isZero();
      }
    }
  }
}
