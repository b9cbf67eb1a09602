package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.aeron.session.PendingCall;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Tests how late a reply may be, and the numbers of calls. */
class ClusterCallTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  @Test
  void aLostReplyIsGivenUpWhileOthersAreAnswered() {
    PendingCall call = new PendingCall(1);
    long start = System.nanoTime();
    long deadline = start + 10 * SECOND;
    assertThat(call.isLate(deadline - 1, deadline, start, SECOND)).isFalse();
    assertThat(call.isLate(deadline + 1, deadline, start, SECOND)).isTrue();
    assertThat(call.isLate(deadline + 1, deadline, deadline, SECOND)).isFalse();
    long late = deadline + 15 * SECOND + 1;
    assertThat(call.isLate(late - 2, deadline, late, SECOND)).isFalse();
    assertThat(call.isLate(late, deadline, late, SECOND)).isTrue();
  }

  @Test
  void aReplyThatComesInPartsIsAwaited() {
    long start = System.nanoTime();
    PendingCall call = new PendingCall(5);
    FrameReader reader =
        new FrameReader(
            1,
            new FrameReader.Messages() {
              @Override
              public void take(int code, long number, BodyReader body) {
                call.complete(code, body.rest());
              }

              @Override
              public void takePart(long number) {
                assertThat(number).isEqualTo(5);
                call.heard();
              }
            });
    List<byte[]> frames = new ArrayList<>();
    new FrameWriter(
            (header, body, at, bytes) -> {
              byte[] frame = new byte[Protocol.HEADER_BYTES + bytes];
              header.getBytes(0, frame, 0, Protocol.HEADER_BYTES);
              frames.add(frame);
              return 1;
            },
            Protocol.HEADER_BYTES + 10,
            1)
        .write(Protocol.OK, 5, new UnsafeBuffer(new byte[20]), 20, 0);
    long created = System.nanoTime();
    long deadline = start - 20 * SECOND;
    assertThat(call.isLate(created + SECOND + 1, deadline, created, SECOND)).isTrue();
    while (System.nanoTime() - created < 2) {
      Thread.onSpinWait();
    }
    reader.onFragment(new UnsafeBuffer(frames.get(0)), 0, frames.get(0).length, null);
    long heard = System.nanoTime();
    assertThat(call.isLate(created + SECOND + 1, deadline, start, SECOND)).isFalse();
    assertThat(call.isLate(heard + SECOND + 1, deadline, heard, SECOND)).isTrue();
    assertThat(call.isDone()).isFalse();
    reader.onFragment(new UnsafeBuffer(frames.get(1)), 0, frames.get(1).length, null);
    assertThat(call.isDone()).isTrue();
  }

  @Test
  void noTwoCallsShareASlot() {
    CallNumbers numbers = new CallNumbers();
    Set<Long> slots = new HashSet<>();
    int most = 1 << CallNumbers.SLOT_BITS;
    long last = 0;
    for (int i = 0; i < most; i++) {
      long number = numbers.next();
      assertThat(number).isGreaterThan(last);
      slots.add(number & (most - 1));
      last = number;
    }
    assertThat(slots).hasSize(most);
    assertThatThrownBy(numbers::next)
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("at most 65536 concurrent calls to a store cluster");
    numbers.free(last);
    assertThat(numbers.next()).isEqualTo(last + most);
  }
}
