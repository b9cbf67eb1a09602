package dev.tutti.fake;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One run of a {@link ThreadedWorld}. */
final class WorldRun<T> {
  /*
   * Rank threads report under the monitor on which the thread that runs the world waits. When a
   * rank fails, its thread first aborts its own group, so that all ranks name this one as the first
   * to fail. It then aborts the groups of all others, which ends the operations whether or not the
   * failure has reached them. Only after a grace period is the store closed and are threads
   * interrupted, so that neither hides how the operations end. If a rank fails to join, the store
   * is closed at once, because others wait in it.
   */
  private static final Duration AGREE_WITHIN = Duration.ofMillis(500);
  private static final Duration INTERRUPT_AFTER = Duration.ofSeconds(1);
  private static final Duration GIVE_UP_AFTER = Duration.ofSeconds(5);
  private static final long JOIN_NANOS = 50_000_000;

  private final WorldOptions world;
  private final RankCall<T> body;
  private final Time time;
  private final HashStore store;
  private final Thread[] threads;
  private final @Nullable ProcessGroup[] groups;
  private final List<@Nullable T> results = new ArrayList<>();
  private final List<RankFailure> failures = new ArrayList<>();
  private int entered;
  private int ended;
  private boolean aborted;

  WorldRun(WorldOptions world, RankCall<T> body) {
    this.world = world;
    this.body = body;
    this.time = world.time;
    this.store = new HashStore(world.timeout, time);
    this.threads = new Thread[world.size];
    this.groups = new ProcessGroup[world.size];
    for (int rank = 0; rank < threads.length; rank++) {
      results.add(null);
      int self = rank;
      threads[rank] = time.unstarted(world.threads(), "rank-" + rank, () -> runRank(self));
    }
  }

  List<T> results() {
    long deadline = time.deadline(world.timeout);
    for (Thread thread : threads) {
      thread.start();
    }
    Throwable ending = null;
    String limit = Ranks.seconds(world.timeout);
    try {
      if (!awaitEnd(deadline)) {
        ending = new WorldTimeoutException(describe("did not end within " + limit));
        abort("the world's deadline of " + limit + " passed");
      }
    } catch (InterruptedException e) {
      ending = new TuttiException("interrupted while " + running() + " ran", e);
      abort("the thread that runs the world was interrupted");
      Thread.currentThread().interrupt();
    }
    joinAll();
    store.close();
    throwFailure(ending);
    @SuppressWarnings("NullAway") // null only for a rank that was killed
    List<T> all = new ArrayList<>(results);
    return all;
  }

  /**
   * Waits until all ranks have ended or one has failed; returns false if the deadline passes first.
   */
  private synchronized boolean awaitEnd(long deadlineNanos) throws InterruptedException {
    while (ended < threads.length && failures.isEmpty()) {
      long left = deadlineNanos - time.nanoTime();
      if (left <= 0) {
        return false;
      }
      time.await(this, left);
    }
    return true;
  }

  private void runRank(int rank) {
    try (ProcessGroup group = ProcessGroup.init(options(rank))) {
      if (enter(rank, group)) {
        runBody(rank, group);
      }
    } catch (Throwable e) {
      fail(rank, e);
    } finally {
      synchronized (this) {
        ended++;
        if (ended == threads.length) {
          notifyAll();
        }
      }
    }
  }

  private GroupOptions options(int rank) {
    return world.complete(
        GroupOptions.DEFAULT.withStore(store).withRank(rank).withSize(threads.length));
  }

  private void runBody(int rank, ProcessGroup group) {
    try {
      T result = body.call(group);
      synchronized (this) {
        results.set(rank, result);
      }
    } catch (Throwable e) {
      fail(rank, e);
    }
  }

  /** Waits until all ranks have their groups; returns false if one could not join. */
  private synchronized boolean enter(int rank, ProcessGroup group) throws InterruptedException {
    groups[rank] = group;
    entered++;
    if (entered == threads.length) {
      notifyAll();
    }
    while (entered < threads.length && failures.isEmpty() && !aborted) {
      wait();
    }
    return entered == threads.length;
  }

  private void fail(int rank, Throwable failure) {
    if (world.isKilled(rank) && isOfGroup(failure)) {
      return;
    }
    boolean first;
    synchronized (this) {
      first = failures.isEmpty();
      failures.add(RankFailure.of(rank, failure));
      notifyAll();
    }
    if (first) {
      String reason = "rank " + rank + " failed: " + failure;
      abortOwn(rank, reason);
      abort(reason);
    }
  }

  /** Returns whether a failure was thrown by a group, or was caused by such an exception. */
  private static boolean isOfGroup(Throwable failure) {
    for (Throwable each = failure; each instanceof Exception; each = each.getCause()) {
      if (each instanceof TuttiException) {
        return true;
      }
    }
    return false;
  }

  /**
   * Aborts the group of one rank, and waits until the ranks agree that it was the first to fail,
   * but only for a short time.
   */
  private void abortOwn(int rank, String reason) {
    ProcessGroup own;
    synchronized (this) {
      own = groups[rank];
    }
    if (own == null) {
      return;
    }
    own.abort(reason);
    long deadline = time.deadline(AGREE_WITHIN);
    while (own.failure().isEmpty() && time.nanoTime() - deadline < 0) {
      time.park(this, 100_000);
    }
  }

  private void abort(String reason) {
    List<ProcessGroup> present = new ArrayList<>();
    synchronized (this) {
      aborted = true;
      notifyAll();
      for (ProcessGroup group : groups) {
        if (group != null) {
          present.add(group);
        }
      }
    }
    for (ProcessGroup group : present) {
      group.abort(reason);
    }
    if (present.size() < threads.length) {
      store.close();
    }
  }

  /** Joins all threads, which have ended or been asked to end; interrupts those that do not. */
  private void joinAll() {
    long start = time.nanoTime();
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        Duration waited = Duration.ofNanos(time.nanoTime() - start);
        if (waited.compareTo(GIVE_UP_AFTER) > 0) {
          break;
        }
        if (waited.compareTo(INTERRUPT_AFTER) > 0) {
          store.close();
          thread.interrupt();
        }
        boolean _ = Uninterrupted.await(() -> time.join(thread, JOIN_NANOS));
      }
    }
  }

  private String running() {
    return Ranks.list(threads.length, rank -> threads[rank].isAlive());
  }

  private String describe(String what) {
    StringBuilder text = new StringBuilder(1024);
    text.append(running()).append(" of ").append(threads.length).append(' ').append(what);
    text.append(outsideOfCalls());
    for (int rank = 0; rank < threads.length; rank++) {
      Thread thread = threads[rank];
      text.append("\n\"").append(thread.getName()).append("\" ").append(thread.getState());
      for (StackTraceElement frame : thread.getStackTrace()) {
        text.append("\n    at ").append(frame);
      }
      ProcessGroup group;
      synchronized (this) {
        group = groups[rank];
      }
      if (group != null && thread.isAlive()) {
        text.append("\n    flight record: ").append(group.diagnostics().flightRecord());
      }
    }
    return text.toString();
  }

  /** Describes where the ranks stand that keep the others waiting. */
  private String outsideOfCalls() {
    StringBuilder text = new StringBuilder();
    for (int rank = 0; rank < threads.length; rank++) {
      String name = text.isEmpty() ? "; in no call of Tutti: rank " : ", rank ";
      int self = rank;
      RankPlace.outsideOfCalls(threads[rank].getStackTrace())
          .filter(place -> !place.getClassName().equals(getClass().getName()))
          .ifPresent(place -> text.append(name).append(self).append(" at ").append(place));
    }
    return text.toString();
  }

  private void throwFailure(@Nullable Throwable ending) {
    List<RankFailure> all;
    String group = "";
    synchronized (this) {
      all = new ArrayList<>(failures);
      ProcessGroup any = groups[0];
      if (any != null) {
        group = any.name();
      }
    }
    Throwable thrown = ending;
    if (thrown == null && !all.isEmpty()) {
      RankFailure first = FailureChoice.first(all, group);
      all.remove(first);
      thrown = first.failure();
      if (!(thrown instanceof Error) && !(thrown instanceof RuntimeException)) {
        thrown = new TuttiException("rank " + first.rank() + " failed: " + thrown, thrown);
      }
      thrown.addSuppressed(RankFailure.reported(first.rank(), thrown));
    }
    if (thrown == null) {
      return;
    }
    all.forEach(thrown::addSuppressed);
    if (!running().equals(Ranks.NONE)) {
      thrown.addSuppressed(new WorldTimeoutException(describe("did not end")));
    }
    if (thrown instanceof Error error) {
      throw error;
    }
    throw (RuntimeException) thrown;
  }
}
