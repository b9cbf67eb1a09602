package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.spi.PeerLateException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Finds out, after a time-out or while an operation still waits, which rank keeps it from ending.
 */
final class TimeoutDiagnosis {
  /*
   * Every rank that is alive publishes its progress when it learns of the failure. Only what this
   * progress proves counts against a rank: that it does not answer, that it has not come to the
   * collective, that it closed the group, or that it does nothing while a peer waits for its
   * message. A rank that itself waits for a message passes the question on to the rank it waits
   * for, and one that waits in a collective to the ranks that have not reached it. Nor is a rank
   * blamed that never joined through this store, such as a rank of PyTorch: it cannot know of the
   * question. If the ranks made different calls, the text says what each called, and the odd one
   * out is blamed.
   */
  private static final String SENDS_FIRST =
      "; a send waits for its recv, so if all ranks send first, all wait: call recv first,"
          + " withAsync(), or batch both";

  private static final int MOST_LINKS = 4;

  private final GroupIdentity group;
  private final JobBoard board;
  private final FailureEvent event;
  private final IntFunction<@Nullable RankProgress> answers;

  private TimeoutDiagnosis(
      GroupIdentity group,
      JobBoard board,
      FailureEvent event,
      IntFunction<@Nullable RankProgress> answers) {
    this.group = group;
    this.board = board;
    this.event = event;
    this.answers = answers;
  }

  /**
   * Asks the other ranks where they stand; ranks that are alive answer on their own.
   *
   * @param deadlineNanos the deadline of all answers, in terms of the group's clock
   */
  static Diagnosis gather(
      GroupIdentity group, JobBoard board, FailureEvent event, long deadlineNanos) {
    return new TimeoutDiagnosis(
            group,
            board,
            event,
            r -> board.progressOf(group.name(), group.globalRanks().get(r), deadlineNanos))
        .gather();
  }

  /**
   * Finds out what holds up an operation that waits for a long time.
   *
   * @param answers the answers of the ranks of the group; null for a rank that does not answer
   */
  static Diagnosis ofSlow(
      GroupIdentity group,
      JobBoard board,
      Question question,
      IntFunction<@Nullable RankProgress> answers) {
    FailureEvent event =
        new FailureEvent(
            question.group(),
            FailureEvent.Kind.TIMEOUT,
            question.reporter(),
            -1,
            question.op(),
            question.sequence(),
            question.peer(),
            question.tag(),
            question.elapsed(),
            "");
    return new TimeoutDiagnosis(group, board, event, answers).gather();
  }

  private Diagnosis gather() {
    if (event.sequence() == 0) {
      return event.isOfMeeting() ? ofMeeting() : Diagnosis.NONE;
    }
    if (event.kind() == FailureEvent.Kind.MISMATCH) {
      return event.op().isPointToPoint() ? Diagnosis.NONE : ofMismatch();
    }
    if (!event.op().isPointToPoint()) {
      return ofCollective(event.sequence());
    }
    if (event.peer() < 0) {
      return ofAnySource();
    }
    Pending op = new Pending(event.op(), event.sequence(), event.peer(), event.tag());
    return ofMessage(event.reporter(), op, new HashSet<>(Set.of(event.reporter())));
  }

  private @Nullable RankProgress progressOf(int rank) {
    return answers.apply(rank);
  }

  private boolean hasJoined(int rank) {
    return board.hasJoined(group.globalRanks().get(rank));
  }

  /**
   * Finds out which rank kept others waiting that make a group: the first that does not answer, or
   * else, in a split, the first that has not come to it.
   */
  private Diagnosis ofMeeting() {
    Diagnosis silent = Diagnosis.NONE;
    Diagnosis absent = Diagnosis.NONE;
    for (int r = 0; r < group.size(); r++) {
      if (!hasJoined(r)) {
        continue;
      }
      RankProgress progress = progressOf(r);
      if (progress == null) {
        silent = silent.and(new Diagnosis(r, "rank " + r + " does not answer"));
      } else if (event.op() == OpType.SPLIT && progress.joining().isEmpty()) {
        String how = progress.closed() ? " closed the group" : " has not called it";
        absent = absent.and(new Diagnosis(r, "rank " + r + how + progress.afterRefusal()));
      }
    }
    return silent.and(absent);
  }

  private Diagnosis ofCollective(long sequence) {
    Diagnosis found = Diagnosis.NONE;
    SortedMap<Integer, RankProgress> answers = new TreeMap<>();
    List<Integer> strangers = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      RankProgress progress = progressOf(r);
      if (progress == null) {
        if (hasJoined(r)) {
          found = found.and(silence(r));
        } else {
          strangers.add(r);
        }
        continue;
      }
      answers.put(r, progress);
      if (progress.issued() < sequence) {
        String last =
            progress.issued() == 0
                ? " (it has called no collective so far)"
                : " (its last collective was #" + progress.issued() + ")";
        if (!progress.joining().isEmpty()) {
          // It is itself waiting for others to make a group with it.
          found =
              found.and(new Diagnosis(-1, "rank " + r + " waits in " + progress.joining() + last));
          continue;
        }
        found =
            found.and(
                new Diagnosis(
                    r,
                    "rank "
                        + r
                        + (progress.closed() ? " closed the group" : " has not called it")
                        + last
                        + progress.afterRefusal()
                        + progress.instead()));
      }
    }
    if (!strangers.isEmpty()) {
      found = found.and(unasked(strangers));
    }
    Diagnosis all = Disagreement.of(answers, group.size()).and(found);
    if (!all.text().isEmpty()) {
      return all;
    }
    String cut = cutLinks(answers);
    return new Diagnosis(
        -1, "all ranks have called it by now" + (cut.isEmpty() ? "" : ", but " + cut));
  }

  /** Names the pairs of ranks that do not reach each other, though all of them reach the store. */
  private static String cutLinks(SortedMap<Integer, RankProgress> answers) {
    List<String> cut = new ArrayList<>();
    answers.forEach(
        (rank, progress) -> {
          for (int peer : progress.unreached()) {
            RankProgress theirs = answers.get(peer);
            boolean isMutual = theirs != null && theirs.unreached().contains(rank);
            if (!isMutual) {
              cut.add("rank " + rank + " does not reach rank " + peer);
            } else if (rank < peer) {
              cut.add("ranks " + rank + " and " + peer + " do not reach each other");
            }
          }
        });
    return cut.size() > MOST_LINKS
        ? String.join(", ", cut.subList(0, MOST_LINKS))
            + " and "
            + (cut.size() - MOST_LINKS)
            + " more"
        : String.join(", ", cut);
  }

  private Diagnosis ofMismatch() {
    SortedMap<Integer, RankProgress> answers = new TreeMap<>();
    List<Integer> late = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      RankProgress progress = progressOf(r);
      if (progress != null) {
        answers.put(r, progress);
      }
      if (progress == null ? hasJoined(r) : !hasCalled(progress)) {
        late.add(r);
      }
    }
    Diagnosis found = Disagreement.of(answers, group.size());
    return late.isEmpty()
        ? found
        : found.and(
            new Diagnosis(-1, PeerLateException.ranks(late) + " did not report a call in time"));
  }

  private boolean hasCalled(RankProgress progress) {
    return progress.recent().stream().anyMatch(call -> call.sequence() == event.sequence());
  }

  private Diagnosis ofAnySource() {
    Diagnosis found = Diagnosis.NONE;
    for (int r = 0; r < group.size(); r++) {
      if (r != event.reporter() && progressOf(r) == null) {
        found = found.and(silence(r));
      }
    }
    return found.text().isEmpty() ? new Diagnosis(-1, "no rank sent in time") : found;
  }

  /**
   * Finds out why a message did not complete, by following the ranks that wait from one to the
   * next.
   *
   * @param waiter the rank that waits
   * @param op the operation in which it waits
   * @param seen the ranks visited so far; grows
   */
  private Diagnosis ofMessage(int waiter, Pending op, Set<Integer> seen) {
    int peer = op.peer();
    seen.add(peer);
    RankProgress theirs = progressOf(peer);
    if (theirs == null) {
      return silence(peer);
    }
    String name = "rank " + peer;
    if (theirs.closed()) {
      return new Diagnosis(peer, name + " closed the group" + theirs.afterRefusal());
    }
    boolean receives = op.type() == OpType.RECV;
    OpType counterpart = receives ? OpType.SEND : OpType.RECV;
    if (theirs.waitsIn(counterpart, waiter, op.tag())
        || (!receives && theirs.waitsIn(OpType.RECV_ANY_SOURCE, waiter, op.tag()))) {
      RankProgress ours = progressOf(waiter);
      String cut = ours == null ? "" : cutLinks(new TreeMap<>(Map.of(waiter, ours, peer, theirs)));
      return new Diagnosis(
          -1,
          name
              + " called "
              + counterpart.label()
              + " with that tag, but "
              + (cut.isEmpty() ? "the data was not transferred" : cut));
    }
    RankProgress ours = receives ? progressOf(waiter) : null;
    if (ours != null) {
      long sent = theirs.sent().getOrDefault(waiter, 0L);
      long received = ours.received().getOrDefault(peer, 0L);
      if (sent > received) {
        return new Diagnosis(
            -1,
            "%s sent %d messages to rank %d, which received %d of them; do tags and order match?"
                .formatted(name, sent, waiter, received));
      }
    }
    String late = name + (receives ? " did not send in time" : " did not receive in time");
    if (theirs.pending().isEmpty()) {
      return new Diagnosis(peer, late + theirs.instead());
    }
    Pending next = theirs.nextWait(seen);
    late += "; it waits in " + next.describe();
    if (!next.type().isPointToPoint()) {
      Diagnosis further = ofCollective(next.sequence());
      // A rank that did not come because it waits for this very message is not to blame.
      int blamed = seen.contains(further.failedRank()) ? -1 : further.failedRank();
      return new Diagnosis(blamed, late + ", " + further.text());
    }
    if (next.peer() < 0 || seen.contains(next.peer())) {
      boolean sendsOnly = op.type() == OpType.SEND && next.type() == OpType.SEND;
      return new Diagnosis(-1, sendsOnly ? late + SENDS_FIRST : late);
    }
    Diagnosis further = ofMessage(peer, next, seen);
    return new Diagnosis(further.failedRank(), late + ", " + further.text());
  }

  private Diagnosis silence(int rank) {
    return hasJoined(rank)
        ? new Diagnosis(rank, "rank " + rank + " does not answer")
        : unasked(List.of(rank));
  }

  private static Diagnosis unasked(List<Integer> ranks) {
    return new Diagnosis(
        -1,
        PeerLateException.ranks(ranks)
            + " cannot be asked, having never joined through this store");
  }
}
