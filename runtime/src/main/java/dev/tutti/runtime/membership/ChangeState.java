package dev.tutti.runtime.membership;

import dev.tutti.runtime.membership.ChangeInput.Collected;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** The state of a change in which a process takes part, and what it does next. */
public final class ChangeState {
  /*
   * A member, and a process that requests to join:
   *
   *   no change ──Change read, or appended──▶ ready ──Generation with me──▶ Enter
   *      ▲                                    │  │ └──Generation without me──▶ Expel
   *      └── (who wants to join) ──Abandoned──┘  └──Abandoned (a member)──▶ Refuse
   *   who wants to join and has waited long enough: ──Withdrawn──▶ Refuse
   *
   * A process that has said that it is ready leaves the change through the log alone: by an entry that counts,
   * of itself or of another. So nobody continues without knowing what the others do.
   *
   * The member that wrote the change proposes who continues, as soon as each member is ready or gone.
   * If it is silent, the first of the others takes over after an answer's time, the rest after two. Several
   * proposals do no harm: the first in the log counts. Once the time of the change has passed, the
   * members that are ready go on alone, if they are enough; else the change is given up.
   *
   * The state has no clock, no thread, no lock, no random number and no hash order. What it appends
   * follows from what it has read, so it makes no difference whether an entry that the store did not
   * answer is in the log: it reads on, and tries again.
   */
  private final Membership membership;
  private final int number;
  private final String name;
  private final long base;
  private final Rules rules;
  private final Ready ready;
  private final long answerNanos;
  private final long giveUpAt;
  private final List<ChangeOutput> outputs = new ArrayList<>();
  private boolean hasWaited;
  private boolean isAppending;
  private boolean isCollecting;
  private boolean hasEnded;
  private long said;
  private long since;
  private long until;
  private long lookAt;
  private @Nullable MembershipEntry proposal;
  private long now;

  /**
   * Creates the state of a process that takes part from now on.
   *
   * @param membership what is known of the log so far, which this state takes over
   * @param number the number of this process; -1 if it is not a member yet
   * @param name the name of this process; empty if it is a member
   * @param base the generation that this process is in
   * @param rules what it requires; of a process that requests to join, only the time counts
   * @param ready what it says of others once it is ready
   * @param answerNanos how long to wait for an answer
   */
  public ChangeState(
      Membership membership,
      int number,
      String name,
      long base,
      Rules rules,
      Ready ready,
      long answerNanos,
      long nowNanos) {
    this.membership = membership;
    this.number = number;
    this.name = name;
    this.base = base;
    this.rules = rules;
    this.ready = ready;
    this.answerNanos = answerNanos;
    this.giveUpAt = number < 0 ? nowNanos + rules.withinNanos() : Long.MAX_VALUE;
  }

  /** Creates a copy, which the original does not change. */
  ChangeState(ChangeState other) {
    membership = new Membership(other.membership);
    number = other.number;
    name = other.name;
    base = other.base;
    rules = other.rules;
    ready = other.ready;
    answerNanos = other.answerNanos;
    giveUpAt = other.giveUpAt;
    hasWaited = other.hasWaited;
    isAppending = other.isAppending;
    isCollecting = other.isCollecting;
    hasEnded = other.hasEnded;
    said = other.said;
    since = other.since;
    until = other.until;
    lookAt = other.lookAt;
    proposal = other.proposal;
  }

  /**
   * Takes one step.
   *
   * @param nowNanos the time of this process; never earlier than before
   */
  public List<ChangeOutput> step(long nowNanos, ChangeInput input) {
    now = nowNanos;
    outputs.clear();
    switch (input) {
      case ChangeInput.Read read -> take(read);
      case ChangeInput.Appended(ChangeInput.Read read) -> {
        isAppending = false;
        take(read);
      }
      case ChangeInput.Unanswered() -> isAppending = false;
      case Collected all -> {
        if (isCollecting && all.change() == membership.open()) {
          isCollecting = false;
          decide(all);
        }
      }
      case ChangeInput.Tick() -> {}
    }
    advance();
    return List.copyOf(outputs);
  }

  /**
   * Takes one step: entries that were not read, or do not count, are deleted.
   *
   * @param nowNanos the time of this process; never earlier than before
   * @param members what all entries before those that are left said
   */
  public List<ChangeOutput> skip(long nowNanos, Membership members) {
    membership.become(members);
    hasEnded = false;
    isAppending = false;
    hasWaited = false;
    forgetPlan();
    return step(nowNanos, new ChangeInput.Tick());
  }

  /**
   * Adds all that decides what happens next, beside the log; the same for states that act alike.
   */
  void addTo(LongConsumer sink) {
    sink.accept(membership.read());
    sink.accept(
        (hasWaited ? 1 : 0)
            + (isAppending ? 2 : 0)
            + (isCollecting ? 4 : 0)
            + (hasEnded ? 8 : 0)
            + 16L * ready.hashCode());
    sink.accept(giveUpAt);
    sink.accept(said);
    sink.accept(since);
    sink.accept(until);
    sink.accept(lookAt);
    sink.accept(proposal == null ? 0 : proposal.text().hashCode());
  }

  /** Returns what this process says of others once it is ready. */
  public Ready ready() {
    return ready;
  }

  /** Returns who is a member, as far as this process has read. */
  public Membership membership() {
    return membership;
  }

  /** Returns when the next limit passes; {@link Long#MAX_VALUE} if there is none. */
  public long nextLimit() {
    if (hasEnded) {
      return Long.MAX_VALUE;
    }
    long next = giveUpAt;
    if (number >= 0 && membership.open() != 0) {
      next = turn() > now ? turn() : isCollecting || proposal != null ? next : lookAt;
    }
    return next;
  }

  private void take(ChangeInput.Read read) {
    if (!membership.take(read)) {
      return;
    }
    forgetPlan();
  }

  private void forgetPlan() {
    hasWaited |= membership.waiting().contains(name);
    proposal = null;
    isCollecting = false;
    lookAt = 0;
  }

  private void advance() {
    if (hasEnded) {
      return;
    }
    if (number >= 0) {
      advanceMember();
    } else {
      advanceJoiner();
    }
  }

  private void advanceMember() {
    if (membership.generation() != base) {
      leave(number);
      return;
    }
    if (membership.open() == 0) {
      if (said != 0) {
        end(new ChangeOutput.Refuse(membership.whyAbandoned()));
      } else {
        append(new MembershipEntry.Change(base, number, membership.first(), rules));
      }
      return;
    }
    sayReady();
    if (proposal != null) {
      append(proposal);
    } else if (!isCollecting && now >= turn() && now >= lookAt) {
      collect(List.of(), List.of(), now);
    }
  }

  private void advanceJoiner() {
    int given = membership.numberOf(name);
    if (given >= 0) {
      leave(given);
      return;
    }
    boolean waits = membership.waiting().contains(name);
    boolean isLate = now >= giveUpAt;
    if (!waits && (hasWaited || isLate)) {
      end(new ChangeOutput.Refuse("no member of generation " + membership.generation() + " asked"));
    } else if (!waits || isLate) {
      append(waits ? new MembershipEntry.Withdrawn(name) : new MembershipEntry.Waiting(name));
    } else if (membership.open() != 0) {
      sayReady();
    }
  }

  private void leave(int as) {
    if (membership.isMember(as)) {
      end(new ChangeOutput.Enter(membership.generation()));
    } else {
      String why = membership.whyLeftOut(as);
      end(new ChangeOutput.Expel(why == null ? "" : why));
    }
  }

  private void end(ChangeOutput how) {
    hasEnded = true;
    outputs.add(how);
  }

  private void append(MembershipEntry entry) {
    if (!isAppending) {
      isAppending = true;
      outputs.add(new ChangeOutput.Append(membership.read() + 1, entry));
    }
  }

  private void sayReady() {
    MembershipEntry.Change change = membership.change();
    if (said == membership.open() || change == null) {
      return;
    }
    said = membership.open();
    since = now;
    until = now + change.rules().withinNanos();
    outputs.add(new ChangeOutput.Say(said));
  }

  // The proposal

  /**
   * Returns when this member proposes: at once if it wrote the change; of the others, the first one
   * after an answer's time, and the rest after two.
   */
  private long turn() {
    MembershipEntry.Change change = membership.change();
    if (change == null || change.by() == number) {
      return since;
    }
    boolean isFirst =
        membership.members().stream().noneMatch(each -> each < number && each != change.by());
    return since + (isFirst ? 1 : 2) * answerNanos;
  }

  private void collect(List<Integer> members, List<String> names, long limit) {
    isCollecting = true;
    outputs.add(new ChangeOutput.Collect(membership.open(), members, names, limit));
  }

  private void decide(Collected all) {
    MembershipEntry.Change change = membership.change();
    if (change == null) {
      return;
    }
    Rules asked = change.rules();
    Map<Integer, Ready> here = new HashMap<>(all.members());
    here.put(number, ready);
    Set<Integer> gone = new TreeSet<>(all.left());
    here.values().forEach(each -> gone.addAll(each.lost()));
    List<Integer> missing = new ArrayList<>();
    for (int member : membership.members()) {
      if (membership.isLost(member)) {
        gone.add(member);
      }
      if (!here.containsKey(member) && !gone.contains(member)) {
        missing.add(member);
      }
    }
    List<String> waiting = new ArrayList<>(membership.waiting());
    List<String> late = new ArrayList<>(waiting);
    late.removeAll(all.names());
    waiting.retainAll(all.names());
    ChangePlan plan = ChangePlan.choose(membership.members(), here, gone, waiting, asked);
    int size = plan.sizeAfter(membership.members().size());
    boolean isEnough = size >= asked.fewest() && plan.joined().size() >= asked.joiners();
    boolean isFull =
        late.isEmpty()
            || size >= asked.most()
            || plan.joined().size() >= asked.mostJoiners()
            || now >= since + answerNanos;
    if (isEnough && (now >= until || (missing.isEmpty() && isFull))) {
      proposal = new MembershipEntry.Generation(membership.open(), base, number, plan);
    } else if (now >= until) {
      proposal = abandoned(whyTooFew(size, plan.joined().size(), asked));
    } else {
      lookAt = now < since + answerNanos ? Math.min(until, since + answerNanos) : until;
      if (!missing.isEmpty() || !late.isEmpty()) {
        collect(missing, late, lookAt);
      }
    }
  }

  private static String whyTooFew(int size, int joined, Rules asked) {
    return joined < asked.joiners()
        ? "%d instead of %d processes came to join".formatted(joined, asked.joiners())
        : "%d members are ready, and at least %d are needed".formatted(size, asked.fewest());
  }

  private MembershipEntry abandoned(String why) {
    return new MembershipEntry.Abandoned(membership.open(), number, why);
  }
}
