package dev.tutti.runtime.membership;

import dev.tutti.runtime.membership.ChangeInput.Collected;
import dev.tutti.runtime.membership.ChangeInput.Read;
import dev.tutti.runtime.model.Hash;
import dev.tutti.runtime.model.Model;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The members of a job that change it, those that request to join, the log, and what they say in
 * the store. Each process has the real {@link ChangeState}; what is done for it are actions, each
 * of which may be the next.
 */
final class ChangeModel implements Model<ChangeModel.Action> {
  /*
   * An append has two actions, its effect and its reply, so a process may end, or the reply may be
   * lost, between them. Time passes only when no process has anything left to do at this time. A
   * process that is paused or cut off from the store continues at any later time. What happens from
   * outside counts as a fault, and their number is limited.
   */
  static final long ANSWER = 100;
  static final long WITHIN = 1000;
  private static final int MOST_ENTRIES = 100;

  /**
   * What is to be explored.
   *
   * @param members how many members there are
   * @param joiners how many processes want to join
   * @param faults how many faults may happen
   * @param rounds how often each process takes part in a change
   * @param rules what the members require
   * @param hasWills whether the store may report the end of a process
   * @param isBlind whether entries are appended even if others came first, so that only the reading
   *     of the log keeps the processes together
   */
  record Setting(
      int members,
      int joiners,
      int faults,
      int rounds,
      Rules rules,
      boolean hasWills,
      boolean isBlind) {}

  /** What may happen next. */
  enum Step {
    CALL,
    READ,
    STORE,
    REPLY,
    LOSE_REPLY,
    SAY,
    COLLECT,
    TICK,
    WILL,
    CRASH,
    PAUSE,
    CUT_OFF,
    RESUME,
    PASS_TIME
  }

  /** One action of a process; -1 stands for all. */
  record Action(Step kind, int who) {
    @Override
    public String toString() {
      return who + " " + kind;
    }
  }

  /** An entry of the log: of members, or the end of one of them. */
  private record Logged(@Nullable MembershipEntry entry, int lost) {
    private long code() {
      return entry == null ? lost : entry.text().hashCode() + (1L << 40);
    }
  }

  private final Setting setting;
  private final Party[] processes;
  private List<Logged> log;

  /** The processes that are ready for each change, with what they say. */
  private Map<Long, Map<String, Ready>> ready;

  private int faultsLeft;
  private long now;

  ChangeModel(Setting setting) {
    this.setting = setting;
    processes = new Party[setting.members + setting.joiners];
    for (int i = 0; i < processes.length; i++) {
      processes[i] =
          i < setting.members
              ? new Party(new Membership(setting.members), i, "")
              : new Party(new Membership(), -1, "j" + (i - setting.members));
    }
    log = List.of();
    ready = Map.of();
    faultsLeft = setting.faults;
  }

  private ChangeModel(ChangeModel other) {
    setting = other.setting;
    processes = other.processes.clone();
    log = other.log;
    ready = other.ready;
    faultsLeft = other.faultsLeft;
    now = other.now;
  }

  /** Returns all that decides what may happen next, mixed to 64 bits. */
  @Override
  public long fingerprint() {
    Hash hash = new Hash();
    hash.add(now);
    hash.add(faultsLeft);
    log.forEach(each -> hash.add(each.code()));
    hash.add(ready.hashCode());
    for (Party each : processes) {
      each.addTo(hash, now);
    }
    return hash.value();
  }

  /**
   * Returns what may happen next. What a process receives does not depend on what the others do
   * next, nor they on it, so that if it can receive something, only its own actions are returned.
   */
  @Override
  public List<Action> actions() {
    List<Action> next = new ArrayList<>();
    for (int i = 0; i < processes.length; i++) {
      List<Action> own = new ArrayList<>();
      addSteps(i, own);
      boolean isLocal =
          own.stream()
              .anyMatch(a -> a.kind == Step.READ || a.kind == Step.REPLY || a.kind == Step.TICK);
      if (isLocal) {
        addSurprises(i, own);
        return own;
      }
      next.addAll(own);
    }
    boolean isQuiet = next.isEmpty();
    for (int i = 0; i < processes.length; i++) {
      addSurprises(i, next);
    }
    if (isQuiet && nextTime() != Long.MAX_VALUE) {
      next.add(new Action(Step.PASS_TIME, -1));
    }
    return next;
  }

  private void addSteps(int i, List<Action> to) {
    Party process = processes[i];
    if (process.hasWill) {
      to.add(new Action(Step.WILL, i));
    }
    if (!process.runs()) {
      return;
    }
    if (process.state == null && process.calls < setting.rounds) {
      to.add(new Action(Step.CALL, i));
    }
    ChangeState state = process.state;
    if (state == null || process.end != null) {
      return;
    }
    if (state.nextLimit() <= now && process.steppedAt < now) {
      to.add(new Action(Step.TICK, i));
    }
    if (process.reply != null) {
      to.add(new Action(Step.REPLY, i));
    }
    if (process.isCutOff) {
      return;
    }
    if (state.membership().read() < log.size()) {
      to.add(new Action(Step.READ, i));
    }
    if (process.append != null) {
      to.add(new Action(Step.STORE, i));
    }
    if (process.says > 0) {
      to.add(new Action(Step.SAY, i));
    } else if (process.collect != null && isCollected(process.collect)) {
      to.add(new Action(Step.COLLECT, i));
    }
  }

  private boolean isCollected(ChangeOutput.Collect collect) {
    Set<String> here = ready.getOrDefault(collect.change(), Map.of()).keySet();
    return collect.limitNanos() <= now
        || (here.containsAll(collect.names())
            && collect.members().stream().allMatch(each -> here.contains(said(each))));
  }

  /** Returns under which name a member says that it is ready. */
  private static String said(int number) {
    return String.valueOf(number);
  }

  private void addSurprises(int i, List<Action> to) {
    Party process = processes[i];
    if (process.isCrashed) {
      return;
    }
    if (process.isPaused || process.isCutOff) {
      to.add(new Action(Step.RESUME, i));
    }
    if (faultsLeft == 0 || process.end != null) {
      return;
    }
    to.add(new Action(Step.CRASH, i));
    if (!process.isPaused) {
      to.add(new Action(Step.PAUSE, i));
    }
    if (!process.isCutOff) {
      to.add(new Action(Step.CUT_OFF, i));
    }
    if (process.reply instanceof ChangeInput.Appended) {
      to.add(new Action(Step.LOSE_REPLY, i));
    }
  }

  private long nextTime() {
    long next = Long.MAX_VALUE;
    for (Party each : processes) {
      if (each.runs() && each.state != null && each.end == null) {
        long limit = each.state.nextLimit();
        next = limit > now ? Math.min(next, limit) : next;
        if (each.collect != null && each.collect.limitNanos() > now) {
          next = Math.min(next, each.collect.limitNanos());
        }
      }
    }
    return next;
  }

  /** Returns what follows from an action. */
  @Override
  public ChangeModel after(Action action) {
    ChangeModel next = new ChangeModel(this);
    if (action.who >= 0) {
      next.processes[action.who] = new Party(processes[action.who]);
    }
    next.act(action);
    return next;
  }

  private void act(Action action) {
    if (action.kind == Step.PASS_TIME) {
      passTime();
      return;
    }
    Party process = processes[action.who];
    switch (action.kind) {
      case CALL -> call(process);
      case READ -> step(process, at(process.state.membership().read() + 1));
      case STORE -> store(process);
      case REPLY -> {
        ChangeInput reply = process.reply;
        process.reply = null;
        step(process, reply);
      }
      case LOSE_REPLY -> {
        faultsLeft--;
        process.wasDisturbed = true;
        process.reply = new ChangeInput.Unanswered();
      }
      case SAY -> say(process);
      case COLLECT -> collect(process);
      case TICK -> step(process, new ChangeInput.Tick());
      case WILL -> {
        process.hasWill = false;
        append(new Logged(null, process.number));
      }
      case CRASH -> {
        faultsLeft--;
        process.isCrashed = true;
        process.hasWill = setting.hasWills && process.number >= 0;
        process.state = null;
      }
      case PAUSE -> {
        faultsLeft--;
        process.isPaused = true;
        process.wasDisturbed = true;
      }
      case CUT_OFF -> {
        faultsLeft--;
        process.isCutOff = true;
        process.wasDisturbed = true;
      }
      case RESUME -> {
        process.isPaused = false;
        process.isCutOff = false;
      }
      case PASS_TIME -> throw new AssertionError();
    }
  }

  private void passTime() {
    for (Party each : processes) {
      boolean isHeld = each.isCutOff || !each.runs() || each.state == null || each.end != null;
      require(
          isHeld || each.saidAt < 0 || now <= each.saidAt + WITHIN + 2 * ANSWER,
          each.who() + " waits longer than it may");
    }
    now = nextTime();
  }

  private void call(Party process) {
    SortedSet<Integer> lost = new TreeSet<>();
    for (Party other : processes) {
      if (other.number >= 0 && !other.runs()) {
        lost.add(other.number);
      }
    }
    process.calls++;
    process.saidAt = -1;
    process.state =
        new ChangeState(
            new Membership(process.known),
            process.number,
            process.number >= 0 ? "" : process.name,
            process.generation,
            setting.rules,
            new Ready(lost, new TreeSet<>()),
            ANSWER,
            now);
    step(process, new ChangeInput.Tick());
  }

  private Read at(long place) {
    Logged there = log.get((int) place - 1);
    return new Read(place, there.entry, there.lost);
  }

  private void store(Party process) {
    ChangeOutput.Append wanted = process.append;
    process.append = null;
    require(wanted.place() <= log.size() + 1, "the log has no gaps");
    if (wanted.place() == log.size() + 1 || setting.isBlind) {
      append(new Logged(wanted.entry(), -1));
    }
    process.reply = new ChangeInput.Appended(at(wanted.place()));
  }

  private void append(Logged entry) {
    List<Logged> all = new ArrayList<>(log);
    all.add(entry);
    log = all;
    require(log.size() <= MOST_ENTRIES, "the log grows without end");
    if (entry.entry instanceof MembershipEntry.Generation) {
      checkGeneration(log.size());
    }
  }

  private void say(Party process) {
    long change = process.says;
    process.says = 0;
    Map<Long, Map<String, Ready>> all = new HashMap<>(ready);
    Map<String, Ready> here = new HashMap<>(all.getOrDefault(change, Map.of()));
    here.put(process.who(), process.state.ready());
    all.put(change, here);
    ready = all;
  }

  private void collect(Party process) {
    ChangeOutput.Collect wanted = process.collect;
    process.collect = null;
    Map<Integer, Ready> members = new HashMap<>();
    Set<String> names = new HashSet<>();
    ready
        .getOrDefault(wanted.change(), Map.of())
        .forEach(
            (who, what) -> {
              if (who.startsWith("j")) {
                names.add(who);
              } else {
                members.put(Integer.valueOf(who), what);
              }
            });
    step(process, new Collected(wanted.change(), members, names, Set.of()));
  }

  private void step(Party process, ChangeInput input) {
    process.steppedAt = now;
    for (ChangeOutput output : process.state.step(now, input)) {
      require(process.end == null, "a process that has ended does nothing more");
      switch (output) {
        case ChangeOutput.Append append -> {
          require(process.append == null && process.reply == null, "one append at a time");
          process.append = append;
        }
        case ChangeOutput.Say(long change) -> {
          process.says = change;
          process.saidAt = now;
        }
        case ChangeOutput.Collect collect -> process.collect = collect;
        default -> end(process, output);
      }
    }
  }

  private void end(Party process, ChangeOutput how) {
    process.end = how;
    process.known = process.state.membership();
    List<Chain> chain = chain((int) process.state.membership().read());
    Chain last = chain.getLast();
    int given = process.state.membership().numberOf(process.name);
    String who = given >= 0 ? said(given) : process.who();
    switch (how) {
      case ChangeOutput.Enter(long generation) -> {
        require(
            generation == last.generation(), who + " enters another generation than the log has");
        require(last.members().contains(who), who + " enters a generation without it");
        require(generation > process.generation, who + " moves back");
        require(
            process.state.membership().members().size() == last.members().size(),
            "the members of a generation differ");
        process.generation = generation;
        if (process.number < 0) {
          process.number = given;
        }
      }
      case ChangeOutput.Expel _ -> require(!last.members().contains(who), who + " is a member");
      case ChangeOutput.Refuse _ ->
          require(
              process.number < 0 || last.generation() == process.generation,
              who + " receives that nothing has changed");
      default -> throw new AssertionError(how);
    }
    if (!(how instanceof ChangeOutput.Expel)
        && process.number >= 0
        && process.calls < setting.rounds
        && process.name.isEmpty()) {
      process.state = null;
      process.saidAt = -1;
      process.end = null;
      process.append = null;
      process.reply = null;
      process.collect = null;
      process.says = 0;
    }
  }

  // What must hold, by the log alone

  /** Returns all generations that count, the last one last. */
  private List<Chain> chain(int entries) {
    List<@Nullable MembershipEntry> read = new ArrayList<>();
    log.subList(0, entries).forEach(each -> read.add(each.entry));
    return Chain.of(read, setting.members);
  }

  private void checkGeneration(int place) {
    Chain last = chain(place).getLast();
    if (last.generation() != place) {
      return;
    }
    MembershipEntry.Generation entry = (MembershipEntry.Generation) log.get(place - 1).entry;
    Set<String> said = new HashSet<>(ready.getOrDefault(entry.change(), Map.of()).keySet());
    List<String> joined = entry.plan().joined();
    int next =
        chain(place).stream()
                .flatMap(each -> each.members().stream())
                .mapToInt(Integer::parseInt)
                .max()
                .orElseThrow()
            + 1
            - joined.size();
    for (int i = 0; i < joined.size(); i++) {
      require(said.contains(joined.get(i)), joined.get(i) + " was not ready to join");
      said.add(said(next + i));
    }
    require(said.containsAll(last.members()), "who was not ready is in generation " + place);
    require(
        last.members().size() >= setting.rules.fewest(), "generation " + place + " is too small");
    require(last.members().size() <= setting.rules.most(), "generation " + place + " is too large");
  }

  private void require(boolean holds, String what) {
    if (!holds) {
      throw new Violation(what);
    }
  }

  /** Checks what holds once nothing more can happen. */
  @Override
  public void checkEnd() {
    boolean isDisturbed = Arrays.stream(processes).anyMatch(each -> each.wasDisturbed);
    boolean isCrashed = Arrays.stream(processes).anyMatch(each -> each.isCrashed);
    Chain last = chain(log.size()).getLast();
    Set<Long> entered = new HashSet<>();
    for (Party each : processes) {
      if (each.isCrashed) {
        continue;
      }
      require(each.end != null || each.state == null, each.who() + " waits for ever");
      if (each.end instanceof ChangeOutput.Enter(long generation)) {
        entered.add(generation);
      }
      boolean isMember = last.members().contains(each.who());
      require(
          !isMember
              || each.end == null
              || each.generation == last.generation()
              || isCrashed
              || isDisturbed
              || each.end instanceof ChangeOutput.Refuse,
          each.who() + " does not know that it is a member");
      boolean mustStay =
          setting.rounds == 1 && !isDisturbed && !setting.isBlind && each.name.isEmpty();
      int left =
          (int) Arrays.stream(processes).filter(p -> p.name.isEmpty() && !p.isCrashed).count();
      require(
          !mustStay
              || left < setting.rules.fewest()
              || setting.rules.joiners() > 0
              || left > setting.rules.most()
              || each.end instanceof ChangeOutput.Enter,
          each.who() + " does not go on: " + each.end);
    }
    require(
        setting.rounds > 1 || isDisturbed || entered.size() <= 1, "two generations: " + entered);
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("at " + now);
    for (int place = 1; place <= log.size(); place++) {
      text.append("\n  ").append(place).append(": ").append(log.get(place - 1));
    }
    for (Party each : processes) {
      text.append("\n  ").append(each.who()).append(": ").append(each.end);
    }
    return text.toString();
  }
}
