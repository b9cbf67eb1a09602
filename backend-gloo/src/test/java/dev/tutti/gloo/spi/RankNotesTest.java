package dev.tutti.gloo.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.gloo.TestContexts;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests notes between three ranks of this process. */
@Timeout(300)
class RankNotesTest {
  private static final int SIZE = 3;

  private final List<RankNotes> notes = new ArrayList<>();
  private final List<Received> received = new ArrayList<>();
  private final BlockingQueue<Integer> failedRanks = new LinkedBlockingQueue<>();

  /** What a rank has received. */
  private static final class Received implements RankNotes.Receiver {
    final BlockingQueue<List<Long>> taken = new LinkedBlockingQueue<>();
    final BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
    volatile @Nullable CountDownLatch held;

    @Override
    public void take(int sender, long kind, long a, long b, long c) {
      CountDownLatch latch = held;
      if (latch != null) {
        awaitUninterruptibly(latch);
      }
      taken.add(List.of((long) sender, kind, a, b, c));
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
      try {
        latch.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public void fail(Throwable cause, int peer) {
      failures.add(cause);
    }
  }

  @BeforeEach
  void connect() throws Exception {
    notes.clear();
    received.clear();
    HashStore store = new HashStore();
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      List<Future<RankNotes>> made = new ArrayList<>();
      for (int rank = 0; rank < SIZE; rank++) {
        int own = rank;
        Duration limit = Duration.ofMinutes(2);
        made.add(
            threads.submit(
                () ->
                    RankNotes.connect(
                        TestContexts.of(
                            own,
                            SIZE,
                            store,
                            limit,
                            (cause, failed) -> {
                              if (own == 0) {
                                failedRanks.add(failed);
                              }
                            }),
                        InetAddress.getLoopbackAddress(),
                        limit)));
      }
      for (Future<RankNotes> each : made) {
        notes.add(each.get());
        received.add(new Received());
      }
    }
  }

  private void listen() {
    for (int rank = 0; rank < SIZE; rank++) {
      notes.get(rank).listen(received.get(rank));
    }
  }

  @AfterEach
  void close() {
    notes.forEach(RankNotes::close);
  }

  @Test
  void notesComeInTheOrderOfTheirSender() throws Exception {
    listen();
    int count = 3000;
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      for (int rank = 0; rank < SIZE; rank++) {
        int own = rank;
        Future<?> _ =
            threads.submit(
                () -> {
                  for (int i = 0; i < count; i++) {
                    for (int peer = 0; peer < SIZE; peer++) {
                      if (peer != own) {
                        notes.get(own).send(peer, i, -i, Long.MAX_VALUE, peer);
                      }
                    }
                  }
                });
      }
    }
    for (int rank = 0; rank < SIZE; rank++) {
      long[] next = new long[SIZE];
      for (int i = 0; i < count * (SIZE - 1); i++) {
        List<Long> note = received.get(rank).taken.take();
        int sender = note.get(0).intValue();
        long number = next[sender]++;
        assertThat(note)
            .containsExactly((long) sender, number, -number, Long.MAX_VALUE, (long) rank);
      }
      assertThat(received.get(rank).failures).isEmpty();
    }
  }

  /** Sends more notes than could be taken one inside the other. */
  @Test
  void aReceiverThatIsLateTakesAllNotes() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    received.get(0).held = held;
    listen();
    int count = 20_000;
    for (int i = 0; i < count; i++) {
      notes.get(1).send(0, i, 0, 0, 0);
    }
    held.countDown();
    for (long i = 0; i < count; i++) {
      assertThat(received.get(0).taken.take()).containsExactly(1L, i, 0L, 0L, 0L);
    }
  }

  @Test
  void aRankThatGivesUpFailsTheOthers() throws Exception {
    listen();
    notes.get(1).abort(new IllegalStateException("enough"));
    assertThat(failedRanks.take()).isOne();
    assertThat(received.get(0).failures.take())
        .isInstanceOfSatisfying(PeerLostException.class, lost -> assertThat(lost.peer()).isOne())
        .hasMessageContaining("rank 1 gave up the group");
  }

  @Test
  void aRankThatClosesFailsNobodyButGetsNoMoreNotes() throws Exception {
    listen();
    notes.get(1).send(0, 7, 0, 0, 0);
    notes.get(1).close();
    assertThat(received.get(0).taken.take()).containsExactly(1L, 7L, 0L, 0L, 0L);
    assertThat(received.get(0).failures.take())
        .isInstanceOfSatisfying(PeerLostException.class, lost -> assertThat(lost.peer()).isOne())
        .hasMessageContaining("closed its group");
    notes.get(0).send(1, 1, 2, 3, 4);
    assertThat(received.get(0).failures.take()).hasMessageContaining("closed its group");
    notes.get(2).abort(new IllegalStateException("enough"));
    assertThat(failedRanks.take()).isEqualTo(2);
  }

  /** Repeats it, since the sender has rarely not seen yet that the receiver listens. */
  @Test
  void theLastNoteComesBeforeTheEnd() throws Exception {
    for (int round = 0; round < 30; round++) {
      notes.get(1).listen(received.get(1));
      notes.get(0).listen(received.get(0));
      notes.get(1).send(0, round, 0, 0, 0);
      notes.get(1).close();
      assertThat(received.get(0).failures.take()).hasMessageContaining("closed its group");
      assertThat(received.get(0).taken).containsExactly(List.of(1L, (long) round, 0L, 0L, 0L));
      close();
      connect();
    }
  }

  @Test
  void aRankThatDoesNotListenCannotSend() {
    assertThatThrownBy(() -> notes.get(0).send(1, 1, 2, 3, 4))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("this rank does not listen");
  }
}
