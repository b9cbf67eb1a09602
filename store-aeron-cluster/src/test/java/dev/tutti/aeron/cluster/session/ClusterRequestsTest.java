package dev.tutti.aeron.cluster.session;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Tests when a request is abandoned because the leader accepts nothing. */
class ClusterRequestsTest {
  private static final long LONG = TimeUnit.SECONDS.toNanos(60);
  private static final long PAUSE = TimeUnit.MICROSECONDS.toNanos(50);
  private static final int BYTES = 300;

  /** A time that passes only while the writer waits. */
  private static final class PassingTime extends ForwardingTime {
    private long now;

    PassingTime() {
      super(Time.SYSTEM);
    }

    @Override
    public long nanoTime() {
      return now;
    }

    @Override
    public void park(Object blocker, long nanos) {
      now += nanos;
    }
  }

  private final List<Integer> written = new ArrayList<>();
  private final PassingTime time = new PassingTime();
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
              1),
          time);

  private boolean write(long giveUp, BooleanSupplier goesOn) {
    return requests.write(Protocol.SET, 1, new UnsafeBuffer(new byte[BYTES]), giveUp, goesOn);
  }

  @Test
  void oneThatIsBegunGoesOnAfterALongPause() {
    room = 2;
    boolean all =
        write(
            LONG,
            () -> {
              room = time.now > TimeUnit.MILLISECONDS.toNanos(1300) ? 3 : 2;
              return true;
            });
    assertThat(all).isTrue();
    assertThat(written).containsExactly(0, 100, 200);
  }

  @Test
  void oneThatIsNotBegunIsGivenUpSoon() {
    assertThat(write(LONG, () -> true)).isFalse();
    assertThat(time.now).isEqualTo(TimeUnit.SECONDS.toNanos(1) + PAUSE);
    assertThat(written).isEmpty();
  }

  @Test
  void oneThatIsBegunEndsAtItsDeadlineOrWithTheSession() {
    room = 1;
    long deadline = TimeUnit.MILLISECONDS.toNanos(100);
    assertThat(write(deadline, () -> true)).isFalse();
    assertThat(time.now).isEqualTo(deadline + PAUSE);
    assertThat(written).containsExactly(0);
    room = 2;
    assertThat(write(LONG, () -> false)).isFalse();
    assertThat(written).containsExactly(0, 0);
  }
}
