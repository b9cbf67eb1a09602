package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(900)
class TransportFailureTest {
  private static final int ROUNDS = 500;
  private static final int SIZE = 3;

  private final AtomicBoolean telling = new AtomicBoolean();
  private final Queue<String> mistaken = new ConcurrentLinkedQueue<>();

  private void check(Throwable cause, int blamed) {
    if (((PeerLostException) cause).peer() != blamed) {
      mistaken.add("rank " + blamed + " for: " + cause.getMessage());
    }
  }

  /** Starts a thread that may spin, which would keep virtual threads from their few carriers. */
  private static FutureTask<Void> background(Callable<Void> call) {
    FutureTask<Void> task = new FutureTask<>(call);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  /** Lets rank 2 fail each time while the failure of rank 1 is being reported. */
  @Test
  void whoIsBlamedIsWhoFailed() throws Exception {
    try (FuzzedTransport peers = new FuzzedTransport()) {
      Transport transport = peers.transport();
      ReentrantLock lock = transport.progress.lock;
      TransportFailure transportFailure = new TransportFailure(transport.pairs, SIZE, this::check);
      Pair first = transport.pairs.get(1);
      Pair second = transport.pairs.get(2);
      CyclicBarrier round = new CyclicBarrier(3);
      FutureTask<Void> failing =
          background(
              () -> {
                for (int i = 0; i < ROUNDS; i++) {
                  round.await(100, TimeUnit.SECONDS);
                  while (!telling.get() || !lock.tryLock()) {
                    Thread.onSpinWait();
                  }
                  transportFailure.peerBroke(
                      second.rank, second.lost("is the second", null), false);
                  lock.unlock();
                  round.await(100, TimeUnit.SECONDS);
                }
                return null;
              });
      // Gives the unlocking thread something to do, so that the other one gets in between.
      FutureTask<Void> queueing =
          background(
              () -> {
                for (int i = 0; i < ROUNDS; i++) {
                  round.await(100, TimeUnit.SECONDS);
                  peers.locked(() -> {});
                  round.await(100, TimeUnit.SECONDS);
                }
                return null;
              });
      for (int i = 0; i < ROUNDS; i++) {
        peers.locked(
            () -> {
              transportFailure.peerBroke(first.rank, first.lost("is the first", null), false);
              round.await(100, TimeUnit.SECONDS);
              awaitQueued(lock);
              telling.set(true);
              transportFailure.deliver();
            });
        round.await(100, TimeUnit.SECONDS);
        telling.set(false);
        peers.locked(transportFailure::deliver);
      }
      failing.get(100, TimeUnit.SECONDS);
      queueing.get(100, TimeUnit.SECONDS);
    }
    assertThat(mistaken).isEmpty();
  }

  @Test
  void theGroupIsToldAlsoWhereTheThreadOfTheTransportEndsAndMemoryIsShort() throws Exception {
    CountDownLatch told = new CountDownLatch(3);
    BackendContext context =
        TestContexts.of(
            0,
            2,
            new HashStore(),
            Duration.ofMinutes(2),
            (cause, rank) -> {
              told.countDown();
              if (told.getCount() > 0) {
                throw new OutOfMemoryError("played");
              }
            });
    Pipe pipe = Pipe.open();
    try (Transport transport =
            new Transport(context, Protection.of(context.settings()), SelectorProvider.provider());
        Pipe.SourceChannel source = pipe.source();
        Pipe.SinkChannel sink = pipe.sink()) {
      source.configureBlocking(false);
      Handler failing =
          key -> {
            throw new StackOverflowError("played");
          };
      source.register(transport.progress.selector(), SelectionKey.OP_READ, failing);
      sink.write(ByteBuffer.allocate(1));
      transport.progress.start(0);
      assertThat(told.await(100, TimeUnit.SECONDS)).isTrue();
      assertThat(transport.failureOf(1)).isInstanceOf(StackOverflowError.class);
    }
  }

  private static void awaitQueued(ReentrantLock lock) {
    long deadline = System.nanoTime() + 100_000_000_000L;
    while (!lock.hasQueuedThreads()) {
      assertThat(System.nanoTime() - deadline).isNegative();
      Thread.onSpinWait();
    }
  }
}
