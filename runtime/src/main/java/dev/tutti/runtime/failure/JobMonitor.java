package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.status.Inquiry;
import dev.tutti.runtime.status.StatusAnswers;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
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
  private static final Duration REPORT_TIMEOUT = Duration.ofSeconds(1);
  private static final int RETRIES = 5;
  private static final int LATE_RETRIES = 300;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final Store readStore;
  private final Store writeStore;
  private final String prefix;
  private final int rank;
  private final int serverRank;
  private final Thread reader;
  private final Object delivery = new Object();
  private final Map<String, Member> groups = new HashMap<>();
  private final List<FailureEvent> lost = new ArrayList<>();
  private final Map<String, Asked> asked = new HashMap<>();
  private final Questions questions;
  private volatile @Nullable StatusAnswers answers;
  private final Map<String, FailureEvent> first = new HashMap<>();
  private long delivered;
  private volatile boolean keepsWills;
  private volatile boolean joined;
  private volatile boolean leaving;
  private volatile boolean closed;
  private final AtomicInteger reports = new AtomicInteger();
  private volatile boolean unheard;
  private volatile long silentNanos = System.nanoTime() - REPORT_TIMEOUT.toNanos();

  /**
   * Creates a monitor.
   *
   * @param serverRank the rank that serves the store; -1 if none does
   */
  public JobMonitor(Store store, String prefix, int rank, int serverRank) {
    this.readStore = store.duplicate();
    this.writeStore = store.duplicate();
    this.prefix = prefix;
    this.questions = new Questions(writeStore, prefix, rank);
    this.rank = rank;
    this.serverRank = serverRank;
    this.reader =
        Thread.ofPlatform().daemon().name("tutti-mon-" + rank).unstarted(this::readEvents);
  }

  /** A group that this rank is in. */
  private record Member(
      List<Integer> globalRanks,
      Consumer<FailureEvent> consumer,
      Supplier<RankProgress> standing) {}

  /** The last question in a group, and its number in the log. */
  private record Asked(Question question, long number) {}

  /**
   * Starts to read the log.
   *
   * @param status reports where this rank stands to those who ask from outside, on threads of this
   *     monitor
   */
  public void start(Supplier<byte[]> status) {
    answers = new StatusAnswers(writeStore, rank, status);
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
      groups.put(group, new Member(globalRanks, consumer, standing));
      for (FailureEvent gone : lost) {
        FailureEvent inGroup = gone.inGroup(group, globalRanks);
        if (inGroup != null) {
          first.putIfAbsent(group, inGroup);
        }
      }
      FailureEvent event = first.get(group);
      if (event != null) {
        consumer.accept(event);
      }
    }
  }

  public void leave(String group) {
    synchronized (delivery) {
      groups.remove(group);
    }
  }

  /**
   * Writes an event to the log, and returns the first event of its group, which may be an earlier
   * one of another rank. Blocks on the store for a second at most; if the store does not answer,
   * the event is delivered on this rank alone, and returned {@linkplain Blame#withoutStore as it is
   * judged then}.
   */
  public FailureEvent report(FailureEvent event) {
    if (System.nanoTime() - silentNanos < REPORT_TIMEOUT.toNanos()) {
      unheard = true;
      return acceptAlone(event);
    }
    reports.incrementAndGet();
    try {
      return BoundedCalls.call("tutti-report-" + rank, REPORT_TIMEOUT, () -> writeReport(event));
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
    long deadline = Deadlines.in(limit);
    while (reports.get() > 0 && System.nanoTime() - deadline < 0) {
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }

  /** Notes that the store has just failed to answer, so that it is not asked again at once. */
  public void noteSilence() {
    silentNanos = System.nanoTime();
  }

  /**
   * Delivers an event that the store did not take in time; returns the first event of its group as
   * this rank judges it.
   */
  private FailureEvent acceptAlone(FailureEvent event) {
    synchronized (delivery) {
      return Blame.withoutStore(accept(event), serverOf(event.group()));
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
      Member member = groups.get(group);
      return member == null ? -1 : member.globalRanks().indexOf(serverRank);
    }
  }

  private FailureEvent write(FailureEvent event) {
    boolean isWritten = false;
    while (true) {
      long number;
      synchronized (delivery) {
        FailureEvent earlier = first.get(event.group());
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
        return questions.find(number, question, group, this);
      }
      deliver(number, there);
    }
  }

  /** Publishes where this rank stands in a group, for the reports of other ranks. */
  public void publishProgress(String group, String text) {
    try {
      writeStore.set(progressKey(group, rank), text);
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot publish its progress: {1}", rank, e);
    }
  }

  /** Reads where another rank stands; null if it does not answer in time. */
  @Nullable RankProgress progressOf(String group, int globalRank, long deadlineNanos) {
    try {
      byte[] text = writeStore.get(progressKey(group, globalRank), Deadlines.left(deadlineNanos));
      return RankProgress.decode(new String(text, StandardCharsets.UTF_8));
    } catch (StoreException e) {
      return null;
    }
  }

  /**
   * Returns where another rank stood when it closed a group without a failure; null if it has not.
   */
  @Nullable RankProgress closeOf(String group, int globalRank) {
    RankProgress progress =
        writeStore.check(List.of(progressKey(group, globalRank)))
            ? progressOf(group, globalRank, Deadlines.in(Duration.ofSeconds(1)))
            : null;
    return progress != null && progress.closed() ? progress : null;
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

  /** Tells whether a rank takes part in this log; ranks of PyTorch do not. */
  public boolean hasJoined(int globalRank) {
    return writeStore.check(List.of(prefix + "joined/" + globalRank));
  }

  /**
   * Notes that this rank takes part.
   *
   * @throws dev.tutti.RendezvousException if a process already takes part as this rank
   */
  public void join() {
    RankClaim.take(writeStore, prefix + "joined/" + rank, rank);
    joined = true;
    keepsWills = writeStore.leaveWill(prefix + EVENT, FailureEvent.lost(rank).encode());
  }

  /**
   * Returns what the ranks found out about the first failure of a group; null if nothing so far.
   */
  @Nullable Diagnosis findingOf(String group) {
    String key = prefix + "finding/" + group;
    return writeStore.check(List.of(key)) ? Diagnosis.decode(writeStore.get(key)) : null;
  }

  /** Offers a finding, and returns the first finding offered, which is the same for all ranks. */
  Diagnosis agree(String group, Diagnosis own) {
    Store.Swap swap = writeStore.compareSet(prefix + "finding/" + group, null, own.encode());
    byte[] there = swap.value();
    return swap.stored() || there == null ? own : Diagnosis.decode(there);
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
      all = Map.copyOf(groups);
    }
    all.forEach(
        (name, member) -> {
          int own = member.globalRanks().indexOf(rank);
          FailureEvent _ =
              report(
                  new FailureEvent(
                      name,
                      FailureEvent.Kind.FAILED,
                      own,
                      own,
                      OpType.UNKNOWN,
                      0,
                      Duration.ZERO,
                      "it can no longer read the failure log: " + cause));
        });
    LOG.log(Level.WARNING, "rank " + rank + ": stopped reading the failure log", cause);
  }

  /** Tells whether the store is still there although a connection to it was lost. */
  private boolean answersAgain(String key, int retries) {
    for (int i = 0; i < retries && !closed && !keepsWills; i++) {
      LockSupport.parkNanos(RETRY_NANOS);
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
      Map.copyOf(groups)
          .forEach(
              (name, member) -> {
                int served = member.globalRanks().indexOf(serverRank);
                if (served >= 0) {
                  accept(
                      new FailureEvent(
                          name,
                          FailureEvent.Kind.PEER_LOST,
                          member.globalRanks().indexOf(rank),
                          served,
                          OpType.UNKNOWN,
                          0,
                          Duration.ZERO,
                          "it served the store: " + why));
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
        if (groups.containsKey(question.group())) {
          Thread.ofPlatform()
              .daemon()
              .name("tutti-tell-" + question.group() + "-" + rank)
              .start(() -> answer(number, question.group()));
        }
      }
    }
  }

  private void answer(long number, String group) {
    Map<String, Member> all;
    synchronized (delivery) {
      all = Map.copyOf(groups);
    }
    Member member = all.get(group);
    if (member == null) {
      return;
    }
    RankProgress standing = member.standing().get();
    StringJoiner elsewhere = new StringJoiner(", ");
    all.forEach(
        (name, other) -> {
          RankProgress there = name.equals(group) ? null : other.standing().get();
          if (there != null && !there.pending().isEmpty()) {
            String what = there.nextWait(Set.of()).describe();
            elsewhere.add("in group " + name + " it waits in " + what);
          }
        });
    if (!standing.elsewhere().isEmpty()) {
      elsewhere.add(standing.elsewhere());
    }
    try {
      questions.answer(number, standing.with(elsewhere.toString()));
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot answer with its progress: {1}", rank, e);
    }
  }

  private void deliver(long number, FailureEvent event) {
    synchronized (delivery) {
      if (number == delivered + 1) {
        delivered = number;
        accept(event);
      }
    }
  }

  private FailureEvent accept(FailureEvent event) {
    if (event.isOfAllGroups()) {
      lost.add(event);
      Map.copyOf(groups).forEach((name, member) -> loseIn(name, member.globalRanks(), event));
      return event;
    }
    FailureEvent earlier = first.putIfAbsent(event.group(), event);
    if (earlier != null) {
      return earlier;
    }
    Member member = groups.get(event.group());
    if (member != null) {
      member.consumer().accept(event);
    }
    return event;
  }

  private void loseIn(String group, List<Integer> globalRanks, FailureEvent event) {
    FailureEvent inGroup = event.inGroup(group, globalRanks);
    if (inGroup != null) {
      accept(inGroup);
    }
  }

  /** Notes that this rank is about to leave: from now on the store may go away. */
  public void leave() {
    leaving = true;
  }

  private String progressKey(String group, int globalRank) {
    return prefix + "progress/" + group + "/" + globalRank;
  }

  private String key(long number) {
    return prefix + EVENT + number;
  }

  @Override
  public void close() {
    closed = true;
    readStore.close();
    writeStore.close();
  }
}
