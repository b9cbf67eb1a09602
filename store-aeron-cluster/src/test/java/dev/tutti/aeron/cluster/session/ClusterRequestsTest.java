package dev.tutti.aeron.cluster.session;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Tests when a request is abandoned because the leader accepts nothing. */
class ClusterRequestsTest {
  private static final long LONG = TimeUnit.SECONDS.toNanos(60);
  private static final int BYTES = 300;

  private final List<Integer> written = new ArrayList<>();
  private int room;
  private final ClusterRequests requests =
      new ClusterRequests(
          new FrameWriter(
              (header, body, at, bytes) -> {
                if (written.size() == room) {
                  return -2;
                }
                written.add(at);
                return 1;
              },
              Protocol.HEADER_BYTES + 100,
              1));

  private boolean write(long giveUp, BooleanSupplier goesOn) {
    return requests.write(Protocol.SET, 1, new UnsafeBuffer(new byte[BYTES]), giveUp, goesOn);
  }

  @Test
  void oneThatIsBegunGoesOnAfterALongPause() {
    room = 2;
    long start = System.nanoTime();
    boolean all =
        write(
            start + LONG,
            () -> {
              room = System.nanoTime() - start > TimeUnit.MILLISECONDS.toNanos(1300) ? 3 : 2;
              return true;
            });
    assertThat(all).isTrue();
    assertThat(written).containsExactly(0, 100, 200);
  }

  @Test
  void oneThatIsNotBegunIsGivenUpSoon() {
    long start = System.nanoTime();
    assertThat(write(start + LONG, () -> true)).isFalse();
    assertThat(System.nanoTime() - start).isLessThan(LONG / 2);
    assertThat(written).isEmpty();
  }

  @Test
  void oneThatIsBegunEndsAtItsDeadlineOrWithTheSession() {
    room = 1;
    long start = System.nanoTime();
    long pause = TimeUnit.MILLISECONDS.toNanos(100);
    assertThat(write(start + pause, () -> System.nanoTime() - start < LONG / 2)).isFalse();
    assertThat(System.nanoTime() - start).isBetween(pause, LONG / 2 - 1);
    assertThat(written).containsExactly(0);
    room = 2;
    assertThat(write(start + LONG, () -> false)).isFalse();
    assertThat(written).containsExactly(0, 0);
  }
}
