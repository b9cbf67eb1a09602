package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.failure.FailureLog.Blame;
import dev.tutti.spi.HostPort;
import dev.tutti.store.PrefixStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A rendezvous that lets the launchers of several nodes agree through the store that node 0 hosts.
 *
 * <p>Protocol, below a prefix of its own: each node claims {@code here/R}, compares its {@code
 * terms} with those of the first node to come, and writes the number of its ranks to {@code
 * node/R}. All nodes then wait for {@code met}, which is written once, by compare-and-set, either
 * by the node that comes last or by one that cannot continue, so that either all start their ranks
 * or none does. In attempt A, the key {@code A/verdict} is written once in the same way, by the
 * first node with a failure, or by the node that finishes last if none has failed; nodes that have
 * finished set {@code A/succeeded/R}. Each node waits for the verdict on its own handle and thread,
 * which meanwhile shows that the node is alive and looks for launchers that are not ({@link
 * Heartbeat}). Such a silence is also a verdict, and so is a store that does not answer for as
 * long. What a node could not write, that thread writes later: all these keys are written by
 * compare-and-set, so writing them again is harmless. Before the next attempt, each node waits for
 * {@code A/stopped/R} of all nodes, and then for {@code A/cleared} of node 0, which deletes what
 * the ranks left. A node that has come leaves by setting {@code left/R}.
 */
public final class StoreRendezvous implements LaunchRendezvous {
  /** The prefix that separates the launchers' keys from those of the ranks. */
  static final String KEPT = "tutti-run";

  /** How long node 0 keeps the store for nodes that have not left. */
  private static final Duration LEAVE_TIMEOUT = Duration.ofSeconds(10);

  /** How long node 0 keeps the store if not all nodes met, and thus no ranks run. */
  private static final Duration UNMET_LEAVE_TIMEOUT = Duration.ofSeconds(2);

  /** The key that tells all nodes whether they met. */
  private static final String MET = "met";

  /** How long one wait for a verdict takes, which is also the time between signs of life. */
  private static final Duration WATCH_INTERVAL = Duration.ofSeconds(5);

  /** How long a launcher may give no sign of life. */
  private static final Duration SILENCE = Duration.ofMinutes(1);

  private final LaunchPlan plan;
  private final Store store;
  private final Store ofRanks;
  private final int port;
  private final Runnable clear;
  private final Runnable leave;
  private final Duration silence;
  private final Duration watchInterval;

  /** The proposal of this node that the store may not know yet. */
  private final AtomicReference<@Nullable Proposal> unsaid = new AtomicReference<>();

  /** Whether this node has claimed its number. */
  private volatile boolean came;

  private volatile boolean met;
  private volatile boolean closed;

  private record Proposal(int attempt, Verdict verdict) {}

  /**
   * The options that must be the same on all nodes.
   *
   * @param nodes the number of nodes
   * @param maxRestarts how often they restart their ranks
   * @param node the node that states these terms
   */
  private record Terms(int nodes, int maxRestarts, int node) {
    static Terms decode(byte @Nullable [] bytes) {
      String[] fields = new String(requireNonNull(bytes), UTF_8).split(" ", 3);
      return new Terms(
          Integer.parseInt(fields[0]), Integer.parseInt(fields[1]), Integer.parseInt(fields[2]));
    }

    byte[] encode() {
      return (nodes + " " + maxRestarts + " " + node).getBytes(UTF_8);
    }

    /** Describes the difference from another node's terms, if there is one. */
    Optional<String> differenceFrom(Terms other) {
      if (node > other.node) {
        return other.differenceFrom(this);
      }
      if (nodes != other.nodes) {
        return Optional.of(difference("--nnodes", nodes, other.nodes, other.node));
      }
      return maxRestarts == other.maxRestarts
          ? Optional.empty()
          : Optional.of(difference("--max-restarts", maxRestarts, other.maxRestarts, other.node));
    }

    private String difference(String option, int mine, int theirs, int other) {
      return "node %d was started with %s=%d, node %d with %s=%d; give all nodes the same value"
          .formatted(node, option, mine, other, option, theirs);
    }
  }

  /**
   * Creates a rendezvous.
   *
   * @param plan the plan to launch, which also tells which node this is
   * @param store the store shared by all nodes and their ranks; closed at the end
   * @param port the port at which ranks find the store
   * @param clear deletes what ranks left in the store; called on node 0 only
   * @param leave the action when all have left, or need not be waited for any longer
   */
  StoreRendezvous(LaunchPlan plan, Store store, int port, Runnable clear, Runnable leave) {
    this(plan, store, port, clear, leave, SILENCE, WATCH_INTERVAL);
  }

  StoreRendezvous(
      LaunchPlan plan,
      Store store,
      int port,
      Runnable clear,
      Runnable leave,
      Duration silence,
      Duration watchInterval) {
    this.plan = plan;
    this.store = new PrefixStore(KEPT, store);
    this.ofRanks = store;
    this.port = port;
    this.clear = clear;
    this.leave = leave;
    this.silence = silence;
    this.watchInterval = watchInterval;
  }

  /**
   * Lets nodes that were started as several find that this one was started as the only one.
   *
   * @param plan the plan of one node
   * @param store the store that the node serves
   */
  static void announceAlone(LaunchPlan plan, Store store) {
    Terms terms = new Terms(plan.nodes(), plan.maxRestarts(), plan.nodeRank());
    var _ = write(new PrefixStore(KEPT, store), "terms", terms.encode());
  }

  @Override
  public int port() {
    return port;
  }

  @Override
  public RankRange join(Consumer<String> messages) {
    int node = plan.nodeRank();
    Verdict meeting;
    try {
      if (!store.compareSet("here/" + node, null, new byte[] {'1'}).stored()) {
        throw new LaunchException(1, "another launcher has already joined as node " + node);
      }
      came = true;
      meeting = meet(messages);
    } catch (StoreException e) {
      String text =
          "the store of node 0 at %s stopped answering before all nodes had joined"
              .formatted(new HostPort(plan.masterAddress(), port));
      throw new LaunchException(1, text, e);
    }
    if (meeting.kind() != Kind.SUCCESS) {
      throw new LaunchException(meeting.code(), meeting.text());
    }
    met = true;
    List<Integer> sizes = Stream.of(meeting.text().split(" ")).map(Integer::valueOf).toList();
    int first = sizes.subList(0, node).stream().mapToInt(Integer::intValue).sum();
    int world = sizes.stream().mapToInt(Integer::intValue).sum();
    return new RankRange(first, world, plan.masterAddress(), port);
  }

  /** Compares the terms, and waits until all nodes have come or one cannot continue. */
  private Verdict meet(Consumer<String> messages) {
    Terms mine = new Terms(plan.nodes(), plan.maxRestarts(), plan.nodeRank());
    Terms first = Terms.decode(store.compareSet("terms", null, mine.encode()).value());
    Optional<String> difference = first.differenceFrom(mine);
    if (difference.isPresent()) {
      Verdict verdict = new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, difference.get());
      leaveWord(verdict);
      return verdict;
    }
    var _ =
        write(store, "node/" + plan.nodeRank(), Integer.toString(plan.localSize()).getBytes(UTF_8));
    return store.check(ofAllNodes("node/")) ? allCame() : awaitOthersToCome(messages);
  }

  /**
   * Writes how the meeting ends unless that is already known, and returns the result that is then
   * known.
   */
  private Verdict decide(Verdict verdict) {
    return decode(requireNonNull(write(store, MET, encode(verdict))));
  }

  private Verdict allCame() {
    String sizes =
        store.multiGet(ofAllNodes("node/")).stream()
            .map(bytes -> new String(bytes, UTF_8))
            .collect(Collectors.joining(" "));
    return decide(new Verdict(Kind.SUCCESS, plan.nodeRank(), -1, 0, sizes));
  }

  private Verdict awaitOthersToCome(Consumer<String> messages) {
    long start = System.nanoTime();
    boolean said = false;
    while (true) {
      Duration left = plan.rendezvousTimeout().minusNanos(System.nanoTime() - start);
      Duration next = said ? watchInterval : Notice.PATIENCE;
      boolean isLast = left.compareTo(next) <= 0;
      try {
        return decode(store.get(MET, isLast ? left : next));
      } catch (StoreTimeoutException e) {
        if (isLast) {
          return giveUp();
        }
        if (!said) {
          said = true;
          sayWhoIsMissing(messages);
        }
      }
    }
  }

  private Verdict giveUp() {
    List<Integer> missing = nodesWithout("node/");
    if (missing.isEmpty()) {
      return allCame();
    }
    String text =
        ("%s of %d did not join at %s within %s (--rdzv-timeout of node %d); check that each was"
                + " started with the same --nnodes and its own --node-rank, and can reach that"
                + " address%s")
            .formatted(
                named(missing),
                plan.nodes(),
                new HostPort(plan.masterAddress(), port),
                Notice.inWords(plan.rendezvousTimeout()),
                plan.nodeRank(),
                missing.contains(0)
                    ? "; another job, or a job of a single node, may be using it"
                    : "");
    return decide(new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, text));
  }

  private List<Integer> nodesWithout(String prefix) {
    return IntStream.range(0, plan.nodes())
        .filter(node -> !store.check(List.of(prefix + node)))
        .boxed()
        .toList();
  }

  private static String named(List<Integer> nodes) {
    return (nodes.size() == 1 ? "node " : "nodes ")
        + nodes.stream().map(Object::toString).collect(Collectors.joining(", "));
  }

  private void sayWhoIsMissing(Consumer<String> messages) {
    List<Integer> missing = nodesWithout("node/");
    if (!missing.isEmpty()) {
      messages.accept(
          "waiting %s (--rdzv-timeout) for %s of %d to join at %s"
              .formatted(
                  Notice.atMost(plan.rendezvousTimeout()),
                  named(missing),
                  plan.nodes(),
                  new HostPort(plan.masterAddress(), port)));
    }
  }

  @Override
  public void refuse(Verdict verdict) {
    // If all have met in the meantime, the others start their ranks and look there.
    propose(0, verdict);
    leaveWord(verdict);
  }

  private void leaveWord(Verdict verdict) {
    try {
      var _ = decide(verdict);
    } catch (StoreException e) {
      // The others notice by their own deadline.
    }
  }

  @Override
  public void begin(int attempt, Consumer<Verdict> listener) {
    Store handle = store.duplicate();
    var _ =
        Thread.ofPlatform()
            .daemon()
            .name("tutti-verdict-" + attempt)
            .start(
                () -> {
                  try (Store _ = handle) {
                    listener.accept(watch(handle, attempt));
                  }
                });
  }

  private Verdict watch(Store handle, int attempt) {
    Heartbeat pulse = new Heartbeat(handle, plan.nodeRank(), plan.nodes(), silence);
    long answeredAt = System.nanoTime();
    while (true) {
      try {
        OptionalInt silent = pulse.beat();
        answeredAt = System.nanoTime();
        sayAgain(handle, attempt);
        if (silent.isPresent()) {
          String text =
              "the launcher of node %d has sent no heartbeat for %d s"
                  .formatted(silent.getAsInt(), silence.toSeconds());
          propose(attempt, new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, text));
        }
      } catch (StoreTimeoutException e) {
        if (closed || System.nanoTime() - answeredAt > silence.toNanos()) {
          return lost(e);
        }
        continue;
      } catch (StoreException e) {
        return lost(e);
      }
      try {
        return decode(handle.get(verdictKey(attempt), watchInterval));
      } catch (StoreTimeoutException e) {
        // There is no verdict yet. The code above shows whether the store answers, even after a
        // long pause of this process.
        if (closed) {
          return lost(e);
        }
      } catch (StoreException e) {
        return lost(e);
      }
    }
  }

  private Verdict lost(StoreException cause) {
    String text = "lost the store of node 0: " + cause.getMessage();
    return new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, text);
  }

  @Override
  public void propose(int attempt, Verdict verdict) {
    Proposal proposal = new Proposal(attempt, verdict);
    unsaid.set(proposal);
    try {
      say(store, proposal);
    } catch (StoreException e) {
      // The watcher proposes it again, or finds the store lost, which is then the verdict.
    }
  }

  private void sayAgain(Store handle, int attempt) {
    Proposal proposal = unsaid.get();
    if (proposal != null && proposal.attempt == attempt) {
      say(handle, proposal);
    }
  }

  private void say(Store handle, Proposal proposal) {
    int attempt = proposal.attempt;
    boolean decided = true;
    if (proposal.verdict.kind() == Kind.SUCCESS) {
      mark(handle, attempt + "/succeeded/" + plan.nodeRank());
      decided = handle.check(ofAllNodes(attempt + "/succeeded/"));
    }
    if (decided) {
      var _ = write(handle, verdictKey(attempt), encode(proposal.verdict));
    }
    unsaid.compareAndSet(proposal, null);
  }

  @Override
  public Optional<Blame> blame(int attempt) {
    try {
      return FailureLog.blame(ofRanks, attempt);
    } catch (StoreException e) {
      return Optional.empty();
    }
  }

  /**
   * Writes a key if it is absent, and returns the value that it then has. A connection that was
   * idle for a long time may turn out to be lost; the next call opens another.
   */
  private static byte @Nullable [] write(Store handle, String key, byte[] value) {
    try {
      return handle.compareSet(key, null, value).value();
    } catch (StoreConnectionException e) {
      return handle.compareSet(key, null, value).value();
    }
  }

  private static void mark(Store handle, String key) {
    var _ = write(handle, key, new byte[] {'1'});
  }

  private List<String> ofAllNodes(String prefix) {
    return IntStream.range(0, plan.nodes()).mapToObj(node -> prefix + node).toList();
  }

  @Override
  public Optional<Verdict> awaitStopped(int attempt, Duration timeout) {
    try {
      mark(store, attempt + "/stopped/" + plan.nodeRank());
      store.await(ofAllNodes(attempt + "/stopped/"), timeout);
      if (plan.nodeRank() == 0) {
        clear.run();
        mark(store, attempt + "/cleared");
      }
      store.await(List.of(attempt + "/cleared"), timeout);
      String next = verdictKey(attempt + 1);
      return store.check(List.of(next)) ? Optional.of(decode(store.get(next))) : Optional.empty();
    } catch (StoreException e) {
      throw new LaunchException(1, whoDidNotStop(attempt, timeout), e);
    }
  }

  private String whoDidNotStop(int attempt, Duration timeout) {
    try {
      List<Integer> missing = nodesWithout(attempt + "/stopped/");
      return missing.isEmpty()
          ? "node 0 did not permit a restart within " + Notice.inWords(timeout)
          : named(missing) + " did not stop all ranks within " + Notice.inWords(timeout);
    } catch (StoreException e) {
      return "lost the store of node 0 while restarting all ranks";
    }
  }

  @Override
  public void withdraw(int attempt, Verdict verdict) {
    propose(attempt + 1, verdict);
    try {
      mark(store, attempt + "/stopped/" + plan.nodeRank());
      if (plan.nodeRank() == 0) {
        mark(store, attempt + "/cleared");
      }
    } catch (StoreException e) {
      // The others notice by their own deadline.
    }
  }

  @Override
  public void close() {
    closed = true;
    try {
      if (came) {
        store.set("left/" + plan.nodeRank(), "1");
      }
      if (plan.nodeRank() == 0) {
        awaitOthersToLeave();
      }
    } catch (StoreException e) {
      // Node 0 is already gone, so there is nobody left to tell.
    } finally {
      store.close();
      leave.run();
    }
  }

  /**
   * Returns the other nodes that have come, including those started for more nodes than this one.
   */
  private List<Integer> othersThatCame() {
    if (met) {
      return IntStream.range(1, plan.nodes()).boxed().toList();
    }
    return store.listKeys().stream()
        .filter(key -> key.startsWith("here/"))
        .map(key -> Integer.valueOf(key.substring("here/".length())))
        .filter(node -> node != 0)
        .sorted()
        .toList();
  }

  private void awaitOthersToLeave() {
    List<Integer> others = othersThatCame();
    List<String> left = others.stream().map(node -> "left/" + node).toList();
    if (left.isEmpty()) {
      return;
    }
    try {
      store.await(left, met ? LEAVE_TIMEOUT : UNMET_LEAVE_TIMEOUT);
    } catch (StoreTimeoutException e) {
      List<Integer> late =
          others.stream().filter(node -> !store.check(List.of("left/" + node))).toList();
      System.getLogger("dev.tutti.cli")
          .log(System.Logger.Level.WARNING, "node 0 exits before {0}", named(late));
    }
  }

  private static String verdictKey(int attempt) {
    return attempt + "/verdict";
  }

  private static byte[] encode(Verdict verdict) {
    List<String> fields = new ArrayList<>();
    fields.add(verdict.kind().name());
    fields.add(Integer.toString(verdict.node()));
    fields.add(Integer.toString(verdict.rank()));
    fields.add(Integer.toString(verdict.code()));
    fields.add(verdict.text());
    return String.join("\n", fields).getBytes(UTF_8);
  }

  private static Verdict decode(byte[] bytes) {
    String[] fields = new String(bytes, UTF_8).split("\n", 5);
    return new Verdict(
        Kind.valueOf(fields[0]),
        Integer.parseInt(fields[1]),
        Integer.parseInt(fields[2]),
        Integer.parseInt(fields[3]),
        fields[4]);
  }
}
