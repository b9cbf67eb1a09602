package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.shared.Until;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a rank with a thread that never waits long, because the next message is always there: the
 * rank must not ignore everything else meanwhile.
 */
class BusyDriverTest {
  private static final long LIMIT = TimeUnit.SECONDS.toNanos(60);
  private static final long STREAM = Slot.BROADCAST.of(1);
  private static final int TAG = 7;

  /**
   * Has a rank receive one message after another until a condition is met. The caller holds its
   * lock, so that no other thread of the rank drives. Only a daemon that was in the selector may
   * leave it.
   */
  private static void keepBusy(Transport rank, Transport sender, BooleanSupplier isMet)
      throws Exception {
    long deadline = System.nanoTime() + LIMIT;
    MemorySegment out = RingRanks.filled(1, 3);
    while (!isMet.getAsBoolean()) {
      MemorySegment in = RingRanks.filled(1, 0);
      Request receive = rank.receive(sender.rank(), STREAM, in, 0, 1);
      rank.flush();
      sender.await(sender.send(rank.rank(), STREAM, out, 0, 1), deadline);
      sender.flush();
      rank.await(receive, deadline);
      assertThat(value(in)).isEqualTo((byte) 3);
      while (rank.progress.lock.hasQueuedThreads()) {
        rank.progress.lock.unlock();
        LockSupport.parkNanos(100_000);
        rank.progress.lock.lock();
      }
      assertThat(System.nanoTime() - deadline).as("the rank sees nothing else").isNegative();
    }
  }

  private static byte value(MemorySegment message) {
    return message.get(ValueLayout.JAVA_BYTE, 0);
  }

  /** The stream goes through a ring, where it is never late; rank 2 uses sockets. */
  @Nested
  @Timeout(300)
  class Mixed extends RingRanks {
    Mixed() {
      super(3, 0, 1);
    }

    @Test
    void aReceiveFromAnyRankHearsOfARankThatIsNotPolled() throws Exception {
      Transport busy = transports.get(0);
      busy.progress.lock.lock();
      try {
        for (int i = 0; i < 10; i++) {
          MemorySegment in = filled(1, 0);
          TestOperation receive = TestOperation.seconds(100);
          TestOperation send = TestOperation.seconds(100);
          new RawMessages(busy).receiveAny(receive, TAG, in, 1);
          new RawMessages(transports.get(2)).send(send, 0, TAG, filled(1, 5 + i), 1);
          keepBusy(busy, transports.get(1), receive::isDone);
          assertSucceeds(receive);
          assertThat(receive.rank()).isEqualTo(2);
          assertThat(value(in)).isEqualTo((byte) (5 + i));
        }
      } finally {
        busy.progress.lock.unlock();
      }
    }
  }

  /** All pairs use rings, and not all have a socket for doorbells yet. */
  @Nested
  @Timeout(300)
  class Shared extends RingRanks {
    private static final int SIZE = 12;

    /** The ranks that are not connected with rank 0 at the start. */
    private static final int[] FAR = {3, 5, 6, 7, 9};

    Shared() {
      super(SIZE, IntStream.range(0, SIZE).toArray());
    }

    private void awaitSleep(int rank) {
      Until.holds(() -> memory.sleep(rank).get(ValueLayout.JAVA_LONG, 0) != 0);
    }

    @Test
    void ranksThatSleepAreConnectedAndWoken() throws Exception {
      for (int rank : FAR) {
        for (int i = 0; i < 3; i++) {
          MemorySegment in = filled(1, 0);
          TestOperation receive = TestOperation.seconds(100);
          transports.get(0).progress.lock.lock();
          try {
            new RawMessages(transports.get(rank)).receive(receive, 0, TAG, in, 1);
            awaitSleep(rank);
            TestOperation send = TestOperation.seconds(100);
            new RawMessages(transports.get(0)).send(send, rank, TAG, filled(1, 5 + i), 1);
            keepBusy(transports.get(0), transports.get(1), receive::isDone);
            assertSucceeds(send);
          } finally {
            transports.get(0).progress.lock.unlock();
          }
          assertSucceeds(receive);
          assertThat(value(in)).isEqualTo((byte) (5 + i));
        }
      }
    }
  }
}
