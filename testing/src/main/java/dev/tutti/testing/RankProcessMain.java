package dev.tutti.testing;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.store.tcp.TcpStore;
import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.platform.commons.support.ReflectionSupport;
import org.opentest4j.TestAbortedException;

/** The main class of the process of one rank of a {@link World} with processes. */
final class RankProcessMain {
  private final Class<?> testClass;
  private final Method method;
  private final String backend;
  private final int rank;
  private final int size;
  private final Store store;
  private final Duration timeout;
  private volatile int exitCode = RankProcesses.FAILED;
  private final CountDownLatch begun = new CountDownLatch(1);
  private volatile @Nullable ProcessGroup group;

  private RankProcessMain(String[] args) throws ClassNotFoundException {
    testClass = Class.forName(args[0]);
    method =
        ReflectionSupport.findMethod(testClass, args[1], args[2])
            .orElseThrow(() -> new IllegalArgumentException("no method " + args[1]));
    backend = args[3];
    rank = Integer.parseInt(args[4]);
    size = Integer.parseInt(args[5]);
    String[] address = args[6].split(File.pathSeparator, 2);
    store = new TcpStore(address[0], Integer.parseInt(address[1]));
    timeout = Duration.ofMillis(Long.parseLong(args[7]));
  }

  /**
   * Runs one rank and exits with one of the codes of {@link RankProcesses}.
   *
   * @param args the class, method, parameter types, backend, rank, size, store address and timeout
   */
  static void main(String[] args) throws Exception {
    RankProcessMain main = new RankProcessMain(args);
    Thread body = Thread.ofPlatform().daemon().name("rank-" + main.rank).start(main::run);
    boolean ended =
        main.begun.await(main.timeout.toMillis(), TimeUnit.MILLISECONDS) && body.join(main.timeout);
    if (!ended) {
      main.reportTimeout();
    }
    System.exit(main.exitCode);
  }

  private void run() {
    try {
      ProcessGroup joined = ProcessGroup.init(options());
      group = joined;
      Object test = ReflectionSupport.newInstance(testClass);
      List<@Nullable Object> standIns = Collections.nCopies(method.getParameterCount(), null);
      @Nullable Object[] arguments = new RankArguments(method, standIns).of(joined);
      begun.countDown();
      ReflectionSupport.invokeMethod(method, test, arguments);
      joined.close();
      exitCode = RankProcesses.PASSED;
    } catch (TestAbortedException e) {
      report(String.valueOf(e.getMessage()));
      exitCode = RankProcesses.ABORTED;
    } catch (Throwable t) {
      StringWriter text = new StringWriter();
      t.printStackTrace(new PrintWriter(text));
      reportBlame(t);
      report(text.toString());
    } finally {
      begun.countDown();
    }
  }

  private GroupOptions options() {
    return GroupOptions.DEFAULT
        .withBackend(backend)
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withTimeout(timeout);
  }

  /**
   * Reports the rank that this rank blames, or -1 if it blames an unknown one; reports nothing if
   * this rank itself failed.
   */
  private void reportBlame(Throwable thrown) {
    boolean own = true;
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      own &= !(each instanceof PeerFailedException);
    }
    int named =
        thrown instanceof CollectiveException known && known.info().group().equals("0")
            ? known.failedRank().orElse(-1)
            : -1;
    if (!own || (named >= 0 && named != rank)) {
      store.set(RankProcesses.BLAMED + rank, Integer.toString(named));
    }
  }

  /** Reports the failure of this rank, first to the test and then to the other ranks. */
  private void report(String what) {
    byte[] self = Integer.toString(rank).getBytes(StandardCharsets.UTF_8);
    store.compareSet(RankProcesses.FIRST_FAILURE, null, self);
    store.set(RankProcesses.FAILURE + rank, what);
    ProcessGroup joined = group;
    if (joined != null) {
      joined.abort("rank " + rank + " failed: " + what.lines().findFirst().orElse(""));
      while (joined.failure().isEmpty()) {
        LockSupport.parkNanos(1_000_000);
      }
      joined.close();
    }
  }

  private void reportTimeout() {
    BigDecimal seconds = BigDecimal.valueOf(timeout.toMillis(), 3).stripTrailingZeros();
    StringBuilder text = new StringBuilder(1024);
    text.append("did not end within ").append(seconds.toPlainString()).append(" s; its threads:\n");
    for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
      text.append(entry.getKey().getName()).append(' ').append(entry.getKey().getState());
      for (StackTraceElement frame : entry.getValue()) {
        text.append("\n    at ").append(frame);
      }
      text.append('\n');
    }
    ProcessGroup joined = group;
    if (joined != null) {
      text.append("flight record: ").append(joined.diagnostics().flightRecord());
    }
    report(text.toString());
  }
}
