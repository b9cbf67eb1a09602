package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RingSegmentsTest {
  private static long[] lengths(RingSegments segments) {
    return LongStream.range(0, segments.count())
        .map(i -> segments.length(segments.offset(i)))
        .toArray();
  }

  private static RingSegments forAllReduce(long total, int elementBytes, int size) {
    RingSegments segments = new RingSegments();
    segments.cutForAllReduce(total, elementBytes, size);
    return segments;
  }

  private static RingSegments forReduce(long total, int elementBytes, int size) {
    RingSegments segments = new RingSegments();
    segments.cutForReduce(total, elementBytes, size);
    return segments;
  }

  private static void assertCut(RingSegments segments, long bytes, long count, long perRank) {
    assertThat(segments.bytes()).isEqualTo(bytes);
    assertThat(segments.count()).isEqualTo(count);
    assertThat(segments.perRank()).isEqualTo(perRank);
  }

  @Test
  void cutsAsGlooDoes() {
    assertCut(forAllReduce(40, 4, 2), 12, 4, 2);
    assertThat(lengths(forAllReduce(40, 4, 2))).containsExactly(12, 12, 12, 4);
    assertThat(lengths(forAllReduce(4, 4, 2))).containsExactly(4, 0, 0, 0);
    assertCut(forAllReduce(10_000_000, 4, 2), 1_000_000, 10, 5);
    assertCut(forReduce(40, 4, 2), 12, 4, 2);
    assertCut(forReduce(10_000_000, 4, 2), 1 << 20, 10, 5);
  }

  @ParameterizedTest
  @CsvSource({"1,2", "4,3", "8,5", "2,4", "8,7"})
  void coversEveryByteOnce(int elementBytes, int size) {
    for (long count : new long[] {1, 2, 3, 100, 1_000_003, 50_000_000}) {
      long total = count * elementBytes;
      for (RingSegments segments :
          new RingSegments[] {
            forAllReduce(total, elementBytes, size), forReduce(total, elementBytes, size)
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
