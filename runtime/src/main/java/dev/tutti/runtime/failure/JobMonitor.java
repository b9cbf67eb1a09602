package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.JoinedGroups.Member;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.status.Inquiry;
import dev.tutti.runtime.status.StatusAnswers;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells all ranks of a job about failures, in the same order on every rank.
 *
 * <p>One instance serves all groups of a rank. The events form a log in the store; every rank reads
 * the log from the start.
 */
public final class JobMonitor implements AutoCloseable {
  /*
   * The log is the keys event/1, event/2, ...; each holds a failure, a question of a rank or an
   * inquiry from outside. Each key is written once, by compare-and-set from absent. The log
   * therefore has no gaps and a single order, and the first event of a group is the same on every
   * rank. A writer that loses the race for a number reads the winner's event, delivers it as the
   * reader thread would, and tries the next number. A rank writes its event before it drops the
   * connections to its peers: a rank that sees a connection end as a consequence finds the cause
   * already in the log.
   *
   * If the store can tell that a process ended, the loss of the rank that serves it shows in the
   * end of the store, which each rank sees for itself. Each rank also leaves an event for the case
   * of its loss, as its will. The will names no group, only the rank among all, and fails every
   * group that this rank is in.
   *
   * The reader thread waits for the next number through a store handle of its own, in slices, so
   * that close never waits for it. Events are delivered under the lock "delivery", in the order of
   * the log. A rank that can no longer read the log would wait for ranks that are gone, so it fails
   * its groups.
   */
  private static final System.Logger LOG = System.getLogger(JobMonitor.class.getName());
  private static final String EVENT = "event/";

  private static final Duration SLICE = Duration.ofSeconds(20);
  private static final int RETRIES = 5;
  private static final int LATE_RETRIES = 300;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final Store readStore;
  private final Store writeStore;
  private final int rank;
  private final int serverRank;
  private final AnswerTimes times;
  private final Time time;
  private final Thread reader;
  private final Object delivery = new Object();
  private final JoinedGroups groups = new JoinedGroups();
  private final Map<String, Asked> asked = new HashMap<>();
  private final JobBoard board;
  private final Questions questions;
  private volatile @Nullable StatusAnswers answers;
  private long delivered;
  private volatile boolean keepsWills;
  private volatile boolean joined;
  private volatile boolean leaving;
  private volatile boolean closed;
  private final AtomicInteger reports = new AtomicInteger();
  private volatile boolean unheard;
  private volatile long silentUntil;

  /**
   * Creates a monitor.
   *
   * @param serverRank the rank that serves the store; -1 if none does
   * @param times how long to wait for answers
   * @param time by which this rank waits
   */
  public JobMonitor(Store store, int rank, int serverRank, AnswerTimes times, Time time) {
    this.time = time;
    this.silentUntil = time.nanoTime();
    this.times = times;
    this.readStore = store.duplicate();
    this.writeStore = store.duplicate();
    this.board = new JobBoard(writeStore, rank, times, time);
    this.questions = new Questions(writeStore, board, rank, times, time);
    this.rank = rank;
    this.serverRank = serverRank;
    this.reader = time.unstarted("tutti-mon-" + rank, this::readEvents);
  }

  /** The last question in a group, and its number in the log. */
  private record Asked(Question question, long number) {}

  /**
   * Starts to read the log.
   *
   * @param status reports where this rank stands to those who ask from outside, on threads of this
   *     monitor
   */
  public void start(Supplier<byte[]> status) {
    answers = new StatusAnswers(writeStore, rank, status, time);
    reader.start();
  }

  /**
   * Delivers the events of a group that is set up to a consumer, including an event that came
   * earlier.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   */
  public void join(String group, List<Integer> globalRanks, Consumer<FailureEvent> consumer) {
    join(group, globalRanks, consumer, () -> RankProgress.ofSetUp(group));
  }

  /**
   * Delivers the events of a group to a consumer, including an event that came earlier.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   * @param standing reports where this rank stands, on a thread of this monitor
   */
  public void join(
      String group,
      List<Integer> globalRanks,
      Consumer<FailureEvent> consumer,
      Supplier<RankProgress> standing) {
    synchronized (delivery) {
      groups.add(group, new Member(globalRanks, consumer, standing));
    }
  }

  public void leave(String group) {
    synchronized (delivery) {
      groups.remove(group);
    }
  }

  /**
   * Writes an event to the log, and returns the first event of its group, which may be an earlier
   * one of another rank. Waits for the store as long as for any answer; if it does not answer, the
   * event is delivered on this rank alone.
   */
  public FailureEvent report(FailureEvent event) {
    if (time.nanoTime() - silentUntil < 0) {
      unheard = true;
      return acceptAlone(event);
    }
    reports.incrementAndGet();
    try {
      return BoundedCalls.call(
          time, "tutti-report-" + rank, times.answer(), () -> writeReport(event));
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot report a failure to the other ranks: {1}", rank, e);
      unheard = true;
      return acceptAlone(event);
    }
  }

  private FailureEvent writeReport(FailureEvent event) {
    try {
      FailureEvent first = write(event);
      unheard = false;
      return first;
    } finally {
      reports.decrementAndGet();
    }
  }

  /**
   * Waits until the store has taken the reports that it did not take in time, so that they are not
   * lost with the connection to it.
   *
   * @param limit the maximum time to wait
   */
  public void awaitReports(Duration limit) {
    long deadline = time.deadline(limit);
    while (reports.get() > 0 && time.nanoTime() - deadline < 0) {
      time.park(this, LOOK_NANOS);
    }
  }

  /** Returns how long to wait for answers. */
  public AnswerTimes times() {
    return times;
  }

  /** Notes that the store has just failed to answer, so that it is not asked again at once. */
  public void noteSilence() {
    silentUntil = time.deadline(times.answer());
  }

  /**
   * Delivers an event that the store did not take in time; returns the first event of its group.
   */
  private FailureEvent acceptAlone(FailureEvent event) {
    synchronized (delivery) {
      return groups.accept(event);
    }
  }

  /** Tells whether the store did not take a failure, so that no other rank can be asked. */
  public boolean isUnheard() {
    return unheard;
  }

  /**
   * Returns the rank of a group that serves the store; -1 if none does, or if the group is unknown.
   */
  public int serverOf(String group) {
    synchronized (delivery) {
      return groups.rankIn(group, serverRank);
    }
  }

  private FailureEvent write(FailureEvent event) {
    boolean isWritten = false;
    while (true) {
      long number;
      synchronized (delivery) {
        FailureEvent earlier = groups.firstFailure(event.group());
        // The event itself may have been delivered on this rank alone while the store was silent.
        if (earlier != null && (isWritten || !earlier.equals(event))) {
          return earlier;
        }
        number = delivered + 1;
      }
      Store.Swap swap = writeStore.compareSet(key(number), null, event.encode());
      byte[] there = swap.value();
      if (swap.stored() || there == null) {
        isWritten = true;
        deliver(number, event);
      } else {
        deliver(number, there);
      }
    }
  }

  /**
   * Asks the ranks of a group where they stand while an operation waits, or waits for the finding
   * of another rank that asks the same; returns the finding in words.
   *
   * @throws StoreException if the store does not answer
   */
  String whatKeeps(Question question, GroupIdentity group) {
    while (true) {
      long number;
      boolean isAsked = false;
      synchronized (delivery) {
        number = delivered + 1;
        Asked earlier = asked.get(question.group());
        if (earlier != null && question.isSame(earlier.question)) {
          isAsked = true;
          number = earlier.number;
        }
      }
      if (isAsked) {
        return questions.findingOf(number);
      }
      Store.Swap swap = writeStore.compareSet(key(number), null, question.encode());
      byte[] there = swap.value();
      if (swap.stored() || there == null) {
        deliver(number, question);
        return questions.find(number, question, group);
      }
      deliver(number, there);
    }
  }

  /** Returns what the ranks tell each other beside the log. */
  public JobBoard board() {
    return board;
  }

  /** Publishes where this rank stands in a group, for the reports of other ranks. */
  public void publishProgress(String group, String text) {
    try {
      board.publish(group, text);
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot publish its progress: {1}", rank, e);
    }
  }

  /** Tells whether a failure was reported below a prefix of a store. */
  public static boolean hasFailed(Store store, String prefix) {
    for (long number = 1; ; number++) {
      String key = prefix + EVENT + number;
      if (!store.check(List.of(key))) {
        return false;
      }
      if (FailureEvent.isOne(store.get(key))) {
        return true;
      }
    }
  }

  /** Tells whether this rank takes part. */
  public boolean hasJoined() {
    return joined;
  }

  /**
   * Notes that this rank takes part.
   *
   * @throws dev.tutti.RendezvousException if a process already takes part as this rank
   */
  public void join() {
    board.join();
    joined = true;
    keepsWills = writeStore.leaveWill(EVENT, FailureEvent.lost(rank).encode());
  }

  private void readEvents() {
    while (!closed) {
      long number;
      synchronized (delivery) {
        number = delivered + 1;
      }
      try {
        readStore.await(List.of(key(number)), SLICE);
        deliver(number, readStore.get(key(number), Duration.ofSeconds(5)));
      } catch (StoreTimeoutException e) {
        LOG.log(Level.TRACE, "rank {0}: no failure so far", rank);
      } catch (StoreClosedException e) {
        return;
      } catch (StoreConnectionException e) {
        if (answersAgain(key(number), RETRIES)) {
          continue;
        }
        if (!closed) {
          LOG.log(Level.WARNING, "rank {0}: lost the store: {1}", rank, e.getMessage());
          loseServer(String.valueOf(e.getMessage()));
        }
        if (leaving || !answersAgain(key(number), LATE_RETRIES)) {
          return;
        }
        LOG.log(Level.WARNING, "rank {0}: the store answers again", rank);
      } catch (RuntimeException | Error e) {
        giveUp(e);
        return;
      }
    }
  }

  /** Fails the groups of this rank, because it no longer hears of failures. */
  private void giveUp(Throwable cause) {
    if (closed || leaving) {
      return;
    }
    Map<String, Member> all;
    synchronized (delivery) {
      all = groups.copy();
    }
    String why = "it can no longer read the failure log: " + cause;
    all.forEach(
        (name, member) -> {
          int own = member.globalRanks().indexOf(rank);
          FailureEvent _ = report(FailureEvent.outside(name, Kind.FAILED, own, own, why));
        });
    LOG.log(Level.WARNING, "rank " + rank + ": stopped reading the failure log", cause);
  }

  /** Tells whether the store is still there although a connection to it was lost. */
  private boolean answersAgain(String key, int retries) {
    for (int i = 0; i < retries && !closed && !keepsWills; i++) {
      time.park(this, RETRY_NANOS);
      try {
        boolean _ = readStore.check(List.of(key));
        return true;
      } catch (StoreException e) {
        LOG.log(Level.DEBUG, "rank {0}: {1}", rank, e.getMessage());
      }
    }
    return false;
  }

  /**
   * Fails the groups of the rank that served the store, if the store can tell that a process is
   * gone.
   */
  private void loseServer(String why) {
    if (!keepsWills || leaving || serverRank < 0) {
      return;
    }
    synchronized (delivery) {
      groups
          .copy()
          .forEach(
              (name, member) -> {
                int own = member.globalRanks().indexOf(rank);
                int served = member.globalRanks().indexOf(serverRank);
                if (served >= 0) {
                  groups.accept(
                      FailureEvent.outside(
                          name, Kind.PEER_LOST, own, served, "it served the store: " + why));
                }
              });
    }
  }

  private void deliver(long number, byte[] entry) {
    if (Question.isQuestion(entry)) {
      deliver(number, Question.decode(entry));
    } else if (Inquiry.isInquiry(entry)) {
      deliver(number, Inquiry.decode(entry));
    } else {
      deliver(number, FailureEvent.decode(entry));
    }
  }

  private void deliver(long number, Inquiry inquiry) {
    synchronized (delivery) {
      if (number == delivered + 1) {
        delivered = number;
        StatusAnswers answering = answers;
        if (answering != null) {
          answering.begin(inquiry);
        }
      }
    }
  }

  private void deliver(long number, Question question) {
    synchronized (delivery) {
      if (number == delivered + 1) {
        delivered = number;
        asked.put(question.group(), new Asked(question, number));
        if (groups.contains(question.group())) {
          Thread _ =
              time.start(
                  "tutti-tell-" + question.group() + "-" + rank,
                  () -> answer(number, question.group()));
        }
      }
    }
  }

  private void answer(long number, String group) {
    Map<String, Member> all;
    synchronized (delivery) {
      all = groups.copy();
    }
    Member member = all.get(group);
    if (member == null) {
      return;
    }
    RankProgress standing = JoinedGroups.standing(member, group, all);
    try {
      questions.answer(number, standing);
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot answer with its progress: {1}", rank, e);
    }
  }

  private void deliver(long number, FailureEvent event) {
    synchronized (delivery) {
      if (number == delivered + 1) {
        delivered = number;
        groups.accept(event);
      }
    }
  }

  /** Notes that this rank is about to leave: from now on the store may go away. */
  public void leave() {
    leaving = true;
  }

  private static String key(long number) {
    return EVENT + number;
  }

  @Override
  public void close() {
    closed = true;
    readStore.close();
    writeStore.close();
  }
}
