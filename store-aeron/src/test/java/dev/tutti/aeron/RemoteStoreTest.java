package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.session.PendingCall;
import dev.tutti.aeron.session.StoreSession;
import dev.tutti.aeron.wire.Protocol;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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
      while (silent && deadline - System.nanoTime() >= 0) {
        LockSupport.parkNanos(deadline - System.nanoTime());
      }
      return !silent;
    }

    @Override
    public long graceNanos() {
      return TimeUnit.SECONDS.toNanos(60); // no thread stands still for that long
    }

    @Override
    public StoreSilentException unanswered() {
      return new StoreSilentException("unanswered");
    }
  }

  private final Closing link = new Closing();
  private final RemoteStore store =
      new RemoteStore(link, Duration.ofSeconds(1)) {
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
  @Timeout(300)
  void closingWaitsForAQuestionThatIsAboutToBeAnswered() throws Exception {
    while (!new RemoteStoreTest().closesWhileAQuestionIsAnsweredSoon()) {
      // Closing does not wait for longer than two seconds.
    }
  }

  /** Returns false if the answer took so long that closing need not have waited for it. */
  private boolean closesWhileAQuestionIsAnsweredSoon() throws Exception {
    link.closes = false;
    Thread closer = Thread.ofPlatform().unstarted(store::close);
    boolean[] left = {true};
    long[] took = {0};
    link.beforeReply =
        () -> {
          long start = System.nanoTime();
          closer.start();
          while (closer.getState() != Thread.State.TIMED_WAITING && closer.isAlive()) {
            Thread.onSpinWait();
          }
          left[0] = link.released;
          took[0] = System.nanoTime() - start;
        };
    assertThat(store.keyCount()).isZero();
    closer.join();
    assertThat(link.released).isTrue();
    boolean soon = took[0] < TimeUnit.SECONDS.toNanos(2);
    assertThat(left[0] && soon).isFalse();
    return soon;
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
  @Timeout(300)
  void closingWaitsForASilentServerOnceHoweverManyWillsThereAre() {
    while (new RemoteStoreTest().waitsForASilentServer() == 0) {
      // The deadline had passed before the first wait.
    }
  }

  /** Closes the store while the server is silent, and returns how often that waits for it. */
  private int waitsForASilentServer() {
    link.closes = false;
    int wills = 20;
    for (int i = 0; i < wills; i++) {
      assertThat(store.leaveWill("log", new byte[1])).isTrue();
    }
    link.silent = true;
    link.waits = 0;
    store.close();
    assertThat(link.waits).isLessThanOrEqualTo(1);
    assertThat(link.sent.subList(wills, link.sent.size()))
        .hasSize(wills)
        .containsOnly(Protocol.WITHDRAW);
    assertThat(link.calls).isEmpty();
    return link.waits;
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
