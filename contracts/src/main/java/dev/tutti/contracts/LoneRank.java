package dev.tutti.contracts;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.fake.RankBody;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A runner of a body on the only rank of a world that is in this JVM; the others are in other JVMs.
 */
final class LoneRank {
  private final GroupOptions options;
  private final Duration timeout;
  private volatile @Nullable ProcessGroup group;
  private volatile @Nullable Throwable failure;

  LoneRank(GroupOptions options, Duration timeout) {
    this.options = options;
    this.timeout = timeout;
  }

  /** Runs the body on a thread of its own and waits for it to end. */
  void run(ThreadGroup threads, RankBody body) throws InterruptedException {
    String name = "rank-" + options.rank().orElseThrow();
    Thread thread = new Thread(threads, () -> runHere(body), name);
    // One that hangs must not keep the JVM.
    thread.setDaemon(true);
    thread.start();
    if (!thread.join(timeout)) {
      AssertionError late = new AssertionError(name + " did not end within " + timeout);
      late.setStackTrace(thread.getStackTrace());
      ProcessGroup own = group;
      if (own != null) {
        own.abort("the world's deadline passed");
      }
      thread.join(timeout);
      throw late;
    }
    Throwable thrown = failure;
    if (thrown != null) {
      throw new AssertionError(name + " failed: " + thrown, thrown);
    }
  }

  private void runHere(RankBody body) {
    try (ProcessGroup own = ProcessGroup.init(options)) {
      group = own;
      try {
        body.run(own);
      } catch (Throwable e) {
        failure = e;
        own.abort("its rank failed: " + e);
      }
    } catch (Throwable e) {
      if (failure == null) {
        failure = e;
      }
    }
  }
}
