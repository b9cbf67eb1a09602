package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Lets ranks 0 and 2 of three exchange messages through rings, and all other pairs through sockets.
 */
@Timeout(300)
class MixedTransportTest extends RingRanks {
  MixedTransportTest() {
    super(3);
  }

  private void exchange(int from, int to, long bytes, int value) {
    MemorySegment in = filled(bytes, 0);
    exchange(from, to, filled(bytes, value), in);
    assertThat(in.mismatch(filled(bytes, value))).isEqualTo(-1);
  }

  private void exchange(int from, int to, MemorySegment out, MemorySegment in) {
    TestOperation receive = TestOperation.seconds(100);
    TestOperation send = TestOperation.seconds(100);
    new RawMessages(transports.get(to)).receive(receive, from, 3, in, in.byteSize());
    new RawMessages(transports.get(from)).send(send, to, 3, out, out.byteSize());
    new RawMessages(transports.get(from)).await(send, send.deadlineNanos());
    new RawMessages(transports.get(to)).await(receive, receive.deadlineNanos());
    assertSucceeds(send);
    assertSucceeds(receive);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, CmaTransfers.LEAST_BYTES - 1})
  void messagesTakeTheRingWhereThereIsOne(long bytes) {
    int value = 1;
    for (int round = 0; round < 20; round++) {
      for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
          if (from != to) {
            exchange(from, to, bytes, value++);
          }
        }
      }
    }
    assertThat(memory.written(0)).isBetween(20 * bytes, 20 * (bytes + 200));
    assertThat(memory.written(1)).isBetween(20 * bytes, 20 * (bytes + 200));
    assertThat(failures).isEmpty();
  }

  @Test
  void alsoAShorterMessageToTheSameAddressMayComeFirst() {
    long[] lengths = {300_000, 3_000_000};
    MemorySegment from = filled(lengths[1], 7);
    MemorySegment to = filled(lengths[1], 0);
    for (long length : lengths) {
      exchange(0, 1, from.asSlice(0, length), to.asSlice(0, length));
    }
    assertThat(to.mismatch(from)).isEqualTo(-1);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 100_000})
  void membersAreNumberedByTheirPlaces(long bytes) throws Exception {
    Members first = new Members(transports.get(2), new int[] {2, 1});
    Members second = new Members(transports.get(1), new int[] {2, 1});
    assertThat(first.rank()).isZero();
    assertThat(second.rank()).isEqualTo(1);
    assertThat(second.size()).isEqualTo(2);
    assertThat(second.rankInGroup(0)).isEqualTo(2);
    MemorySegment in = filled(bytes, 0);
    TestOperation operation = TestOperation.seconds(100);
    Request receive = second.receive(0, Slot.BROADCAST.of(7), in, 0, bytes);
    first.sendDetached(1, Slot.BROADCAST.of(7), filled(bytes, 5), 0, bytes);
    first.flush();
    second.flush();
    second.await(receive, operation);
    first.awaitSent(operation);
    assertThat(in.mismatch(filled(bytes, 5))).isEqualTo(-1);
    assertThat(memory.written(1)).isZero();
  }
}
