import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.TuttiException;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;

/**
 * Times how long ranks, threads of this process with a connection each to one server, take to join
 * a group over sockets, and how long after one aborts it the last of the others continues.
 *
 * <p>Arguments: numbers of ranks. A number that occurs twice is measured twice.
 */
public class JoinTimes {
  private static final Duration LIMIT = Duration.ofMinutes(2);

  private final int size;
  private final int port;
  private final CyclicBarrier together;
  private final CountDownLatch waiting;
  private volatile long aborted;

  private JoinTimes(int size, int port) {
    this.size = size;
    this.port = port;
    together = new CyclicBarrier(size);
    waiting = new CountDownLatch(size - 1);
  }

  /** When a rank began to join, had joined, and had noticed the failure. */
  private record Times(long began, long joined, long failed) {}

  public static void main(String[] args) throws Exception {
    for (String number : args) {
      try (TcpStoreServer server = new TcpStoreServer(0)) {
        new JoinTimes(Integer.parseInt(number), server.port()).measure();
      }
    }
    System.exit(0); // whatever still closes
  }

  private void measure() throws Exception {
    List<FutureTask<Times>> ranks = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int number = i;
      ranks.add(new FutureTask<>(() -> rank(number)));
      Thread.ofPlatform().daemon().start(ranks.getLast());
    }
    long began = Long.MAX_VALUE;
    long joined = 0;
    long failed = 0;
    for (FutureTask<Times> rank : ranks) {
      Times times = rank.get();
      began = Math.min(began, times.began);
      joined = Math.max(joined, times.joined);
      failed = Math.max(failed, times.failed);
    }
    print("join", joined - began);
    print("failure", failed - aborted);
  }

  private void print(String op, long nanos) {
    System.out.printf(
        "{\"op\":\"%s\",\"clients\":%d,\"time_us_p50\":%d}%n", op, size, nanos / 1000);
  }

  private Times rank(int number) throws Exception {
    together.await();
    long began = System.nanoTime();
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend("gloo")
            .withStore(new TcpStore("127.0.0.1", port))
            .withRank(number)
            .withSize(size)
            .withSetting("TUTTI_GLOO_SHARED_BYTES", "0")
            .withTimeout(LIMIT);
    ProcessGroup group = ProcessGroup.init(options);
    long joined = System.nanoTime();
    together.await();
    if (number == size - 1) {
      waiting.await();
      Thread.sleep(500); // all wait in the barrier by then
      aborted = System.nanoTime();
      group.abort("measured");
      return new Times(began, joined, aborted);
    }
    waiting.countDown();
    try {
      group.barrier();
      throw new IllegalStateException("the barrier ended without a rank");
    } catch (TuttiException e) {
      return new Times(began, joined, System.nanoTime());
    }
  }
}
