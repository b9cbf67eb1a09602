package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.LostProcess;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A rendezvous of the launchers of an elastic job whose nodes come and go.
 *
 * <p>The launchers agree by a log ({@link NodeLog}) that says who came, is done, is gone, and how
 * the job ended. A launcher without a heartbeat is gone: another says so in the log, and reports
 * the ranks of that node as lost. What a launcher could not write, it writes later, from the thread
 * that watches.
 */
final class MovingNodes implements LaunchRendezvous {
  private static final String TERMS = "terms";
  private static final String PROCESSES = "processes/";

  /** How long a node that serves the store keeps it for others that have not left. */
  private static final Duration FAREWELL = Duration.ofSeconds(10);

  private final LaunchPlan plan;
  private final NodeRange range;
  private final Store shared;
  private final NodeKeys keys;
  private final RankRange place;
  private final boolean serves;
  private final Runnable leave;
  private final Duration silence;
  private final Duration interval;
  private final Time time;
  private final NodeLog log;
  private final String launcher;

  /** What this launcher has to say and the store may not have yet. */
  private final ConcurrentLinkedQueue<NodeEvent> unsaid = new ConcurrentLinkedQueue<>();

  /** How this node ended on its own. */
  private final AtomicReference<@Nullable Verdict> own = new AtomicReference<>();

  private volatile Consumer<String> messages = _ -> {};
  private volatile boolean closed;

  /**
   * Creates a rendezvous.
   *
   * @param plan the plan of this node
   * @param range how many nodes there may be
   * @param shared the store of all nodes and their ranks; closed at the end
   * @param place where the ranks find the store; its ranks do not count
   * @param serves whether this process serves the store
   * @param leave the action when all have left, or need not be waited for any longer
   * @param silence how long a launcher may give no sign of life
   * @param interval how long one wait for an entry takes, and the time between signs of life
   */
  MovingNodes(
      LaunchPlan plan,
      NodeRange range,
      Store shared,
      RankRange place,
      boolean serves,
      Runnable leave,
      Duration silence,
      Duration interval,
      Time time) {
    this.plan = plan;
    this.range = range;
    this.shared = shared;
    this.keys = NodeKeys.of(plan, shared);
    this.place = place;
    this.serves = serves;
    this.leave = leave;
    this.silence = silence;
    this.interval = interval;
    this.time = time;
    this.log = new NodeLog(keys.store(), range.fewest());
    this.launcher = Long.toHexString(time.random()) + Long.toHexString(time.random());
  }

  @Override
  public int port() {
    return place.masterPort();
  }

  @Override
  public RankRange join(Consumer<String> receiver) {
    messages = receiver;
    try {
      LaunchTerms mine = LaunchTerms.of(plan);
      byte[] agreed = keys.write(TERMS, mine.encode());
      Optional<String> difference =
          agreed == null ? Optional.empty() : LaunchTerms.decode(agreed).differenceFrom(mine);
      if (difference.isPresent()) {
        throw new LaunchException(1, difference.get());
      }
      NodeMember member =
          new NodeArrival(plan, range, log, pulse(keys.store()), launcher, interval, time, receiver)
              .arrive(this::notBegun);
      int ranks = log.look(NodeRoster::firstRanks);
      return new RankRange(
          member.firstRank(), ranks, place.masterAddress(), place.masterPort(), member.joins());
    } catch (StoreException e) {
      throw new LaunchException(1, "the store stopped answering before the job began", e);
    }
  }

  private NodeEvent gone(String why) {
    return new NodeEvent.Gone(plan.nodeRank(), launcher, why);
  }

  private boolean isMember() {
    return log.look(roster -> roster.has(plan.nodeRank(), launcher));
  }

  private String gaveUp() {
    return "the other nodes went on without this one, since no heartbeat of this launcher came for "
        + Notice.inWords(silence);
  }

  private NodePulse pulse(Store store) {
    return new NodePulse(store, log, launcher, silence, time);
  }

  /** Returns what ends the wait of this node for others: that of all if it serves the store. */
  private NodeEvent notBegun(String text) {
    return serves ? new NodeEvent.Ended(Verdict.stopped(plan.nodeRank(), text)) : gone(text);
  }

  @Override
  public void refuse(Verdict verdict) {
    say(gone(verdict.text()));
  }

  @Override
  public void propose(int attempt, Verdict verdict) {
    boolean endsAlone = verdict.kind() == Kind.STOPPED && !serves;
    if (endsAlone) {
      own.set(verdict);
    }
    say(
        verdict.kind() == Kind.SUCCESS
            ? new NodeEvent.Done(plan.nodeRank(), launcher)
            : endsAlone ? gone(verdict.text()) : new NodeEvent.Ended(verdict));
  }

  private void say(NodeEvent event) {
    unsaid.add(event);
    try {
      sayAll();
    } catch (StoreException e) {
      // The thread that watches says it again, or finds the store lost, which is then the verdict.
    }
  }

  private void sayAll() {
    for (NodeEvent event = unsaid.peek(); event != null; event = unsaid.peek()) {
      NodeEvent next = event;
      boolean _ =
          log.append(
              next,
              roster ->
                  next instanceof NodeEvent.Ended
                      ? roster.verdict().isEmpty()
                      : roster.has(plan.nodeRank(), launcher));
      boolean _ = unsaid.remove(next);
    }
  }

  @Override
  public void begin(int attempt, Consumer<Verdict> listener) {
    Store handle = keys.store().duplicate();
    var _ =
        time.start(
            "tutti-nodes",
            () -> {
              try (handle) {
                listener.accept(watch(handle, attempt));
              }
            });
  }

  /** Watches the nodes until this one ends, and returns how. */
  private Verdict watch(Store handle, int attempt) {
    NodePulse pulse = pulse(handle);
    long answeredAt = time.nanoTime();
    long shortSince = 0;
    try {
      while (true) {
        try {
          pulse.beat();
          sayAll();
          answeredAt = time.nanoTime();
          // This thread is not the only one that reads the log.
          String next = log.nextKey();
          report(attempt);
          shortSince = endIfTooShort(shortSince);
          Optional<Verdict> ended = ended();
          if (ended.isPresent()) {
            return ended.get();
          }
          boolean _ = pulse.awaitEntry(next, interval);
        } catch (StoreTimeoutException e) {
          if (closed || time.nanoTime() - answeredAt > silence.toNanos()) {
            throw e;
          }
        }
      }
    } catch (StoreException e) {
      return Verdict.stopped(plan.nodeRank(), "lost the store of the job: " + e.getMessage());
    }
  }

  private Optional<Verdict> ended() {
    if (isMember()) {
      return log.look(NodeRoster::verdict);
    }
    Verdict mine = own.get();
    return Optional.of(
        mine != null
            ? mine
            : log.look(NodeRoster::verdict)
                .orElseGet(() -> Verdict.stopped(plan.nodeRank(), gaveUp())));
  }

  /** Says who came and who is gone, and reports the processes of nodes that are lost. */
  private void report(int attempt) {
    List<NodeLog.Change> changes = log.changes();
    for (NodeLog.Change change : changes.subList(placeOfOwn(changes) + 1, changes.size())) {
      int node = change.event().node();
      if (node == plan.nodeRank()) {
        continue;
      }
      if (change.event() instanceof NodeEvent.Came came
          && log.look(roster -> roster.at(node)).filter(NodeMember::joins).isPresent()) {
        messages.accept("node %d joins with %s".formatted(node, Counts.of(came.ranks(), "rank")));
      }
      if (change.event() instanceof NodeEvent.Gone(int _, String name, String why)
          && log.look(NodeRoster::verdict).isEmpty()) {
        change.before().ifPresent(member -> reportLost(attempt, name, member.host()));
        int left = log.look(NodeRoster::nodes).size();
        messages.accept(
            "node %d is gone: %s; %s"
                .formatted(
                    node,
                    why,
                    left < range.fewest()
                        ? "%d of at least %d nodes are left: waiting %s (--rdzv-timeout) for others"
                            .formatted(
                                left, range.fewest(), Notice.atMost(plan.rendezvousTimeout()))
                        : "the job continues with " + Counts.of(left, "node")));
      }
    }
  }

  /** Returns the place of the entry by which this node came, or -1 if it came earlier. */
  private int placeOfOwn(List<NodeLog.Change> changes) {
    for (int place = 0; place < changes.size(); place++) {
      if (changes.get(place).event() instanceof NodeEvent.Came came
          && came.launcher().equals(launcher)) {
        return place;
      }
    }
    return -1;
  }

  private void reportLost(int attempt, String name, String host) {
    String key = PROCESSES + name;
    if (keys.store().check(List.of(key))) {
      Set<Long> pids =
          Stream.of(new String(keys.store().get(key), UTF_8).strip().split(" "))
              .map(Long::valueOf)
              .collect(Collectors.toSet());
      LostProcess.report(shared, attempt, host, pids);
    }
  }

  /** Ends the job if it has had too few nodes for too long; returns since when it has, or 0. */
  private long endIfTooShort(long since) {
    if (!log.look(NodeRoster::isShort)) {
      return 0;
    }
    long now = time.nanoTime();
    if (since == 0) {
      return now;
    }
    if (now - since > plan.rendezvousTimeout().toNanos()) {
      String text =
          "fewer than the %d nodes that --nnodes requires were left for %s (--rdzv-timeout)"
              .formatted(range.fewest(), Notice.inWords(plan.rendezvousTimeout()));
      boolean _ =
          log.append(
              new NodeEvent.Ended(Verdict.stopped(plan.nodeRank(), text)), NodeRoster::isShort);
    }
    return since;
  }

  @Override
  public void started(long pid) {
    try {
      keys.store().append(PROCESSES + launcher, (pid + " ").getBytes(UTF_8));
    } catch (StoreException e) {
      // If this node is lost, the others find out by themselves that this process is.
    }
  }

  @Override
  public RankLog ranks() {
    return new RankLog(shared::duplicate);
  }

  @Override
  public @Nullable Scaling watchScaling(Scaling.Listener requests) {
    Scaling.refuse(
        keys.store(),
        "the nodes of this job come and go: start a launcher on a further node to add its ranks, or"
            + " end one with SIGTERM to remove them");
    return null;
  }

  @Override
  public void close() {
    closed = true;
    try {
      boolean _ = log.append(gone("it left"), roster -> roster.has(plan.nodeRank(), launcher));
      NodePulse pulse = pulse(keys.store());
      long deadline = time.deadline(FAREWELL);
      while (serves && !log.look(NodeRoster::nodes).isEmpty() && deadline > time.nanoTime()) {
        boolean _ = pulse.awaitEntry(log.nextKey(), time.left(deadline));
        log.read();
      }
    } catch (StoreException e) {
      // There is nobody left to notify.
    } finally {
      keys.store().close();
      leave.run();
    }
  }
}
