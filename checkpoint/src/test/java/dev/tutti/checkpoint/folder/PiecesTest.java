package dev.tutti.checkpoint.folder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that each piece is worked on once, and that a failure reaches the caller. */
class PiecesTest {
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 1000})
  void eachPieceIsWorkedOnOnce(int count) throws IOException {
    Set<Integer> pieces = new ConcurrentSkipListSet<>();
    AtomicInteger calls = new AtomicInteger();
    Pieces.forEach(
        count,
        100,
        (piece, buffer) -> {
          assertThat(buffer).isEqualTo(ByteBuffer.allocate(100));
          pieces.add(piece);
          calls.incrementAndGet();
        });
    assertThat(calls).hasValue(count);
    assertThat(pieces).isEqualTo(IntStream.range(0, count).boxed().collect(Collectors.toSet()));
  }

  @Test
  void aFailureEndsTheWork() {
    IOException failure = new IOException("full");
    assertThatThrownBy(
            () ->
                Pieces.forEach(
                    1_000_000_000,
                    1,
                    (piece, buffer) -> {
                      if (piece == 7) {
                        throw failure;
                      }
                    }))
        .isSameAs(failure);
  }

  @Test
  void anInterruptReachesNoPieceAndIsKept() throws IOException {
    AtomicInteger calls = new AtomicInteger();
    Thread.currentThread().interrupt();
    Pieces.forEach(
        10,
        1,
        (piece, buffer) -> {
          assertThat(Thread.currentThread().isInterrupted()).isFalse();
          calls.incrementAndGet();
        });
    assertThat(Thread.interrupted()).isTrue();
    assertThat(calls).hasValue(10);
  }
}
