package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.spi.PeerLateException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The graph of which rank waits for which, after a time-out or while an operation still waits, and
 * the rank at its end.
 */
final class WaitsFor {
  /*
   * Every rank that is alive publishes its progress when it is notified of the failure. Only what this
   * progress proves counts against a rank: that it does not answer, that it has not come to the
   * collective, that it closed the group, or that it does nothing while a peer waits for its
   * message. A rank that itself waits for a message passes the question on to the rank it waits
   * for, and one that waits in a collective to the ranks that have not reached it. What holds a
   * rank in an earlier collective than the one that failed is thus the cause. A rank that did
   * not join through this store, such as a rank of PyTorch, is never blamed: it cannot see the
   * question. If the ranks made different calls, the text says what each called, and the odd one
   * out is blamed.
   *
   * A walk may come to ranks that have not been asked. It counts them as silent and lists them as
   * needed; its finding holds only if there are none. A message thus needs the answers of the ranks
   * on its way alone, and no rank off it holds up the finding.
   */
  private static final String SENDS_FIRST =
      "; a send waits for its recv: if all ranks send first, all are blocked; post a recv first,"
          + " send with withAsync(), or use batch()";

  private static final int MOST_LINKS = 4;

  private final Evidence evidence;
  private final FailureEvent event;
  private final SortedSet<Integer> needed = new TreeSet<>();
  private final Diagnosis finding;

  /** Walks the graph, from the rank that reported the failure. */
  WaitsFor(Evidence evidence) {
    this.evidence = evidence;
    this.event = evidence.event();
    this.finding = walk();
  }

  /** Returns what keeps the operation from ending; only valid if no further answers are needed. */
  Diagnosis finding() {
    return finding;
  }

  /** Returns the ranks that must be asked before there is a finding. */
  Set<Integer> needed() {
    return needed;
  }

  private Diagnosis walk() {
    if (event.sequence() == 0) {
      return event.isOfMeeting() ? ofMeeting() : Diagnosis.NONE;
    }
    if (event.kind() == FailureEvent.Kind.MISMATCH) {
      return event.op().isPointToPoint() ? Diagnosis.NONE : ofMismatch();
    }
    if (!event.op().isPointToPoint()) {
      return ofCollective(event.sequence());
    }
    return event.peer() < 0 ? ofAnySource() : ofMessage();
  }

  private @Nullable RankProgress answerOf(int rank) {
    if (!evidence.hasAsked(rank)) {
      needed.add(rank);
    }
    return evidence.answers().get(rank);
  }

  /** Returns the answers of all ranks. */
  private SortedMap<Integer, RankProgress> answers() {
    IntStream.range(0, evidence.size()).forEach(this::answerOf);
    return evidence.answers();
  }

  /**
   * Finds out which rank kept others waiting that make a group: the first that does not answer, or
   * else, in a split, the first that has not come to it.
   */
  private Diagnosis ofMeeting() {
    Diagnosis silent = Diagnosis.NONE;
    Diagnosis absent = Diagnosis.NONE;
    for (int r = 0; r < evidence.size(); r++) {
      RankProgress progress = answerOf(r);
      if (progress == null) {
        silent = evidence.strangers().contains(r) ? silent : silent.and(silence(r));
      } else if (event.op() == OpType.SPLIT && progress.joining().isEmpty()) {
        String how = progress.closed() ? " closed the group" : " has not called it";
        absent = absent.and(new Diagnosis(r, "rank " + r + how + progress.afterRefusal()));
      }
    }
    return silent.and(absent);
  }

  private Diagnosis ofCollective(long sequence) {
    SortedMap<Integer, RankProgress> answers = answers();
    Diagnosis found = Diagnosis.NONE;
    Diagnosis held = Diagnosis.NONE;
    long heldIn = sequence;
    for (int r = 0; r < evidence.size(); r++) {
      RankProgress progress = answers.get(r);
      if (progress == null) {
        found = evidence.strangers().contains(r) ? found : found.and(silence(r));
      } else if (progress.issued() < sequence) {
        Diagnosis absence = absence(r, progress);
        long oldest = progress.oldestCollective();
        if (progress.closed() || oldest >= sequence) {
          found = found.and(absence);
        } else {
          held = held.and(new Diagnosis(-1, absence.text()));
          heldIn = Math.min(heldIn, oldest);
        }
      }
    }
    if (heldIn < sequence) {
      Diagnosis cause = held.and(ofCollective(heldIn));
      return cause.failedRank() < 0 ? cause.and(found) : cause;
    }
    if (!evidence.strangers().isEmpty()) {
      found = found.and(unasked(List.copyOf(evidence.strangers())));
    }
    Diagnosis all = Disagreement.of(answers, evidence.size()).and(found);
    if (!all.text().isEmpty()) {
      return all;
    }
    String cut = cutLinks(answers);
    return new Diagnosis(
        -1, "all ranks have called it by now" + (cut.isEmpty() ? "" : ", but " + cut));
  }

  /** Describes a rank that has not come to a collective; it is not to blame if it joins a group. */
  private static Diagnosis absence(int rank, RankProgress progress) {
    String last =
        progress.issued() == 0
            ? " (it has called no collective so far)"
            : " (its last collective was #" + progress.issued() + ")";
    if (!progress.joining().isEmpty()) {
      return new Diagnosis(-1, "rank " + rank + " waits in " + progress.joining() + last);
    }
    String how = progress.closed() ? " closed the group" : " has not called it";
    return new Diagnosis(
        rank, "rank " + rank + how + last + progress.afterRefusal() + progress.instead());
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
    SortedMap<Integer, RankProgress> answers = answers();
    List<Integer> late = new ArrayList<>(evidence.silent());
    answers.forEach(
        (rank, progress) -> {
          if (!hasCalled(progress)) {
            late.add(rank);
          }
        });
    late.sort(null);
    Diagnosis found = Disagreement.of(answers, evidence.size());
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
    for (int r = 0; r < evidence.size(); r++) {
      if (r != event.reporter() && answerOf(r) == null) {
        found = found.and(silence(r));
      }
    }
    return found.text().isEmpty() ? new Diagnosis(-1, "no rank sent in time") : found;
  }

  /** Follows the ranks that wait for a message from one to the next. */
  private Diagnosis ofMessage() {
    Set<Integer> seen = new HashSet<>(Set.of(event.reporter()));
    StringBuilder way = new StringBuilder();
    int waiter = event.reporter();
    Pending op = new Pending(event.op(), event.sequence(), event.peer(), event.tag());
    while (true) {
      int peer = op.peer();
      seen.add(peer);
      RankProgress theirs = answerOf(peer);
      if (theirs == null) {
        return silence(peer).after(way);
      }
      Diagnosis end = endOf(waiter, op, theirs);
      if (end != null) {
        return end.after(way);
      }
      Pending next = theirs.nextWait(seen);
      way.append(late(op)).append("; it waits in ").append(next.describe());
      if (!next.type().isPointToPoint()) {
        Diagnosis further = ofCollective(next.sequence());
        // A rank that did not come because it waits for this very message is not to blame.
        int blamed = seen.contains(further.failedRank()) ? -1 : further.failedRank();
        return new Diagnosis(blamed, way + ", " + further.text());
      }
      if (next.peer() < 0 || seen.contains(next.peer())) {
        boolean sendsOnly = op.type() == OpType.SEND && next.type() == OpType.SEND;
        return new Diagnosis(-1, way + (sendsOnly ? SENDS_FIRST : ""));
      }
      way.append(", ");
      waiter = peer;
      op = next;
    }
  }

  private static String late(Pending op) {
    String did = op.type() == OpType.RECV ? " did not send in time" : " did not receive in time";
    return "rank " + op.peer() + did;
  }

  /**
   * Finds out whether the way of a message ends at the peer, given its answer; null if the peer
   * itself waits.
   */
  private @Nullable Diagnosis endOf(int waiter, Pending op, RankProgress theirs) {
    int peer = op.peer();
    String name = "rank " + peer;
    if (theirs.closed()) {
      return new Diagnosis(peer, name + " closed the group" + theirs.afterRefusal());
    }
    boolean receives = op.type() == OpType.RECV;
    OpType counterpart = receives ? OpType.SEND : OpType.RECV;
    if (theirs.waitsIn(counterpart, waiter, op.tag())
        || (!receives && theirs.waitsIn(OpType.RECV_ANY_SOURCE, waiter, op.tag()))) {
      RankProgress ours = answerOf(waiter);
      String cut = ours == null ? "" : cutLinks(new TreeMap<>(Map.of(waiter, ours, peer, theirs)));
      return new Diagnosis(
          -1,
          name
              + " called "
              + counterpart.label()
              + " with that tag, but "
              + (cut.isEmpty() ? "the data was not transferred" : cut));
    }
    RankProgress ours = receives ? answerOf(waiter) : null;
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
    return theirs.pending().isEmpty() ? new Diagnosis(peer, late(op) + theirs.instead()) : null;
  }

  private Diagnosis silence(int rank) {
    return evidence.strangers().contains(rank)
        ? unasked(List.of(rank))
        : new Diagnosis(rank, "rank " + rank + " does not answer");
  }

  private static Diagnosis unasked(List<Integer> ranks) {
    return new Diagnosis(
        -1,
        PeerLateException.ranks(ranks)
            + " did not join through this store, so they cannot be asked");
  }
}
