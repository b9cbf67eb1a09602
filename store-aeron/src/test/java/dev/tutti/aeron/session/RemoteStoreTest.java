package dev.tutti.aeron.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests calls that start while their store is being closed. */
class RemoteStoreTest {
  /** A session that closes the store when a call starts. */
  private final class Closing implements StoreSession {
    final List<Integer> sent = new ArrayList<>();
    final List<PendingCall> calls = new ArrayList<>();
    boolean closes = true;
    Runnable beforeReply = () -> {};
    int unanswered;
    boolean silent;
    int waits;
    volatile boolean released;

    @Override
    public String server() {
      return "played";
    }

    @Override
    public boolean isUsable() {
      return true;
    }

    @Override
    public boolean retain() {
      return true;
    }

    @Override
    public void release() {
      released = true;
    }

    @Override
    public PendingCall newCall() {
      if (closes) {
        store.close();
      }
      PendingCall call = new PendingCall(1);
      calls.add(call);
      return call;
    }

    @Override
    public void forget(PendingCall call) {
      calls.remove(call);
    }

    @Override
    public void send(int code, PendingCall call, long deadline, Request request) {
      sent.add(code);
      beforeReply.run();
      if (unanswered-- > 0) {
        throw unanswered();
      }
      call.complete(Protocol.OK, new byte[8]);
    }

    @Override
    public boolean await(PendingCall call, long deadline, boolean endable) {
      waits++;
      if (silent) {
        time.now = Math.max(time.now, deadline);
      }
      return !silent;
    }

    @Override
    public long graceNanos() {
      return TimeUnit.SECONDS.toNanos(60);
    }

    @Override
    public StoreSilentException unanswered() {
      return new StoreSilentException("unanswered");
    }
  }

  /** A clock that advances only when a wait for the server ends without an answer. */
  private static final class StillTime extends ForwardingTime {
    volatile long now;

    StillTime() {
      super(Time.SYSTEM);
    }

    @Override
    public long nanoTime() {
      return now;
    }
  }

  private final StillTime time = new StillTime();
  private final Closing link = new Closing();
  private final RemoteStore store =
      new RemoteStore(link, Duration.ofSeconds(1), time) {
        @Override
        public Store duplicate() {
          throw new UnsupportedOperationException();
        }
      };

  @Test
  void aCallThatBeginsWhileTheStoreIsClosedIsNotSent() {
    assertThatThrownBy(() -> store.await(List.of("key")))
        .isInstanceOf(StoreClosedException.class)
        .hasMessage("the store at played is closed");
    assertThat(link.sent).isEmpty();
    assertThat(link.calls).isEmpty();
  }

  @Test
  void aQuestionThatBeginsWhileTheStoreIsClosedIsNotSent() {
    assertThatThrownBy(store::keyCount)
        .isInstanceOf(StoreClosedException.class)
        .hasMessage("the store at played is closed");
    assertThat(link.sent).isEmpty();
    assertThat(link.calls).isEmpty();
  }

  @Test
  void closingWaitsForAQuestionThatIsAboutToBeAnswered() throws Exception {
    link.closes = false;
    Thread closer = Thread.ofPlatform().unstarted(store::close);
    boolean[] left = {true};
    link.beforeReply =
        () -> {
          closer.start();
          while (closer.getState() != Thread.State.TIMED_WAITING && closer.isAlive()) {
            Thread.onSpinWait();
          }
          left[0] = link.released;
        };
    assertThat(store.keyCount()).isZero();
    closer.join();
    assertThat(left[0]).isFalse();
    assertThat(link.released).isTrue();
  }

  @Test
  void allWillsAreTakenBackAlsoWhereAnAnswerIsLate() {
    link.closes = false;
    link.unanswered = 1;
    assertThatThrownBy(() -> store.leaveWill("log", new byte[1]))
        .isInstanceOf(StoreTimeoutException.class);
    assertThat(store.leaveWill("log", new byte[1])).isTrue();
    link.unanswered = 1;
    store.close();
    assertThat(link.sent)
        .containsExactly(Protocol.WILL, Protocol.WILL, Protocol.WITHDRAW, Protocol.WITHDRAW);
    assertThat(link.calls).isEmpty();
    assertThat(link.released).isTrue();
  }

  @Test
  void closingWaitsForASilentServerOnceHoweverManyWillsThereAre() {
    link.closes = false;
    int wills = 20;
    for (int i = 0; i < wills; i++) {
      assertThat(store.leaveWill("log", new byte[1])).isTrue();
    }
    link.silent = true;
    link.waits = 0;
    store.close();
    assertThat(link.waits).isEqualTo(1);
    assertThat(link.sent.subList(wills, link.sent.size()))
        .hasSize(wills)
        .containsOnly(Protocol.WITHDRAW);
    assertThat(link.calls).isEmpty();
  }

  @Test
  void aWillLeavesRoomForItsNumber() {
    link.closes = false;
    String longest = "k".repeat(Store.MAX_KEY_BYTES - 10);
    assertThat(store.leaveWill(longest, new byte[1])).isTrue();
    assertThatThrownBy(() -> store.leaveWill(longest + "k", new byte[1]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has 8193 bytes, at most 8192 are allowed");
  }
}
