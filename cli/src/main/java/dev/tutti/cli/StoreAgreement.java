package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.Agreement.Verdict.Kind;
import dev.tutti.internal.HostPort;
import dev.tutti.store.PrefixStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Lets the launchers of several nodes agree through the store that node 0 hosts.
 *
 * <p>Protocol, below a prefix of its own: each node claims {@code node/R} with the number of its
 * ranks, and reads all, or finds the verdict of one that cannot come. In attempt A the key {@code
 * A/verdict} is written once, by compare-and-set: by the first node with a failure, or by the node
 * that finishes last if none has one; those that finished have {@code A/succeeded/R}. Each node
 * waits for the verdict on a handle and thread of its own, and meanwhile shows that it lives and
 * looks for launchers that do not ({@link Pulse}): such a silence is a verdict too, and so is a
 * store that does not answer for as long. What a node could not write, that thread writes later:
 * all these keys are written by compare-and-set, and may be so again. Before the next attempt each
 * node waits for {@code A/stopped/R} of all, and then for {@code A/cleared} of node 0, which
 * deletes what the ranks left.
 */
final class StoreAgreement implements Agreement {
  /** Keeps the launchers' keys apart from those of the ranks. */
  static final String KEPT = "tutti-run";

  /** How long node 0 keeps the store for nodes that have not left. */
  private static final Duration LEAVE_TIMEOUT = Duration.ofSeconds(10);

  /** How long one wait for a verdict takes, and with it the time between signs of life. */
  private static final Duration WATCH_INTERVAL = Duration.ofSeconds(5);

  /** How long a launcher may give no sign of life. */
  private static final Duration SILENCE = Duration.ofMinutes(1);

  private final LaunchPlan plan;
  private final Store store;
  private final int port;
  private final Runnable clear;
  private final Runnable leave;
  private final Duration silence;
  private final Duration watchInterval;

  /** Is what this node has to say and the store may not know. */
  private final AtomicReference<@Nullable Proposal> unsaid = new AtomicReference<>();

  private volatile boolean closed;

  private record Proposal(int attempt, Verdict verdict) {}

  /**
   * Creates an agreement.
   *
   * @param plan what is launched, and which node this is
   * @param store what all nodes and their ranks share; closed at the end
   * @param port where ranks find the store
   * @param clear deletes what ranks left in the store; called on node 0 only
   * @param leave what to do when all have left, or need not be waited for any more
   */
  StoreAgreement(LaunchPlan plan, Store store, int port, Runnable clear, Runnable leave) {
    this(plan, store, port, clear, leave, SILENCE, WATCH_INTERVAL);
  }

  StoreAgreement(
      LaunchPlan plan,
      Store store,
      int port,
      Runnable clear,
      Runnable leave,
      Duration silence,
      Duration watchInterval) {
    this.plan = plan;
    this.store = new PrefixStore(KEPT, store);
    this.port = port;
    this.clear = clear;
    this.leave = leave;
    this.silence = silence;
    this.watchInterval = watchInterval;
  }

  @Override
  public int port() {
    return port;
  }

  @Override
  public Cohort join(Consumer<String> messages) {
    int node = plan.nodeRank();
    byte[] localSize = Integer.toString(plan.localSize()).getBytes(UTF_8);
    if (!store.compareSet("node/" + node, null, localSize).stored()) {
      throw new LaunchException(1, "another launcher already joined as node " + node);
    }
    try {
      List<Integer> sizes =
          sizesOfAllNodes(messages).stream()
              .map(bytes -> Integer.valueOf(new String(bytes, UTF_8)))
              .toList();
      int first = sizes.subList(0, node).stream().mapToInt(Integer::intValue).sum();
      int world = sizes.stream().mapToInt(Integer::intValue).sum();
      return new Cohort(first, world, plan.masterAddress(), port);
    } catch (StoreTimeoutException e) {
      throw new LaunchException(1, "not all nodes came in time: " + e.getMessage(), e);
    }
  }

  /** Waits for all nodes, unless one says that it will not come. */
  private List<byte[]> sizesOfAllNodes(Consumer<String> messages) {
    long start = System.nanoTime();
    boolean said = false;
    while (true) {
      Duration left = plan.rendezvousTimeout().minusNanos(System.nanoTime() - start);
      boolean soon = !said && Notice.PATIENCE.compareTo(watchInterval) < 0;
      Duration next = soon ? Notice.PATIENCE : watchInterval;
      boolean isLast = left.compareTo(next) <= 0;
      try {
        return store.multiGet(ofAllNodes("node/"), isLast ? left : next);
      } catch (StoreTimeoutException e) {
        if (store.check(List.of(verdictKey(0)))) {
          Verdict verdict = decode(store.get(verdictKey(0)));
          throw new LaunchException(verdict.code(), verdict.text(), e);
        }
        if (isLast) {
          throw e;
        }
        if (!said) {
          said = true;
          sayWhoIsMissing(messages);
        }
      }
    }
  }

  private void sayWhoIsMissing(Consumer<String> messages) {
    List<String> missing =
        IntStream.range(0, plan.nodes())
            .filter(node -> !store.check(List.of("node/" + node)))
            .mapToObj(Integer::toString)
            .toList();
    if (!missing.isEmpty()) {
      messages.accept(
          "waiting, %s (--rdzv-timeout), for %s %s of %d to come to %s"
              .formatted(
                  Notice.atMost(plan.rendezvousTimeout()),
                  missing.size() == 1 ? "node" : "nodes",
                  String.join(", ", missing),
                  plan.nodes(),
                  new HostPort(plan.masterAddress(), port)));
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
    Pulse pulse = new Pulse(handle, plan.nodeRank(), plan.nodes(), silence);
    long answeredAt = System.nanoTime();
    while (true) {
      try {
        OptionalInt silent = pulse.beat();
        answeredAt = System.nanoTime();
        sayAgain(handle, attempt);
        if (silent.isPresent()) {
          String text =
              "the launcher of node %d gave no sign of life for %d s"
                  .formatted(silent.getAsInt(), silence.toSeconds());
          propose(attempt, new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, text));
        }
        return decode(handle.get(verdictKey(attempt), watchInterval));
      } catch (StoreTimeoutException e) {
        if (closed || System.nanoTime() - answeredAt > silence.toNanos()) {
          return lost(e);
        }
      } catch (StoreException e) {
        return lost(e);
      }
    }
  }

  private Verdict lost(StoreException cause) {
    String text = "the store of node 0 is lost: " + cause.getMessage();
    return new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 1, text);
  }

  @Override
  public void propose(int attempt, Verdict verdict) {
    Proposal proposal = new Proposal(attempt, verdict);
    unsaid.set(proposal);
    try {
      say(store, proposal);
    } catch (StoreException e) {
      // The watcher says it again, or finds that the store is lost, and its verdict is the end.
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
      write(handle, verdictKey(attempt), encode(proposal.verdict));
    }
    unsaid.compareAndSet(proposal, null);
  }

  /**
   * Writes a key if it is not there. A connection that nobody used for long may turn out to be
   * lost; the next call opens another.
   */
  private static void write(Store handle, String key, byte[] value) {
    try {
      var _ = handle.compareSet(key, null, value);
    } catch (StoreConnectionException e) {
      var _ = handle.compareSet(key, null, value);
    }
  }

  private static void mark(Store handle, String key) {
    write(handle, key, new byte[] {'1'});
  }

  private List<String> ofAllNodes(String prefix) {
    return IntStream.range(0, plan.nodes()).mapToObj(node -> prefix + node).toList();
  }

  @Override
  public Optional<Verdict> awaitStopped(int attempt, Duration timeout) {
    try {
      mark(store, attempt + "/stopped/" + plan.nodeRank());
      store.wait(ofAllNodes(attempt + "/stopped/"), timeout);
      if (plan.nodeRank() == 0) {
        clear.run();
        mark(store, attempt + "/cleared");
      }
      store.wait(List.of(attempt + "/cleared"), timeout);
      String next = verdictKey(attempt + 1);
      return store.check(List.of(next)) ? Optional.of(decode(store.get(next))) : Optional.empty();
    } catch (StoreException e) {
      throw new LaunchException(1, "not all nodes stopped their ranks: " + e.getMessage(), e);
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
      // The others find that they wait in vain.
    }
  }

  @Override
  public void close() {
    closed = true;
    try {
      long left = store.add("left", 1);
      if (left == plan.nodes()) {
        store.set("all-left", "1");
      } else if (plan.nodeRank() == 0 && left < nodesThatCame()) {
        awaitOthers();
      }
    } catch (StoreException e) {
      // Node 0 is gone already, and with it whom to tell.
    } finally {
      store.close();
      leave.run();
    }
  }

  private void awaitOthers() {
    try {
      store.wait(List.of("all-left"), LEAVE_TIMEOUT);
    } catch (StoreTimeoutException e) {
      System.getLogger("dev.tutti.cli")
          .log(System.Logger.Level.WARNING, "node 0 leaves before all others: {0}", e.getMessage());
    }
  }

  private long nodesThatCame() {
    return ofAllNodes("node/").stream().filter(node -> store.check(List.of(node))).count();
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
