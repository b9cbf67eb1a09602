package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.spi.HostPort;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The meeting of the nodes before the first attempt.
 *
 * <p>Each node claims {@code here/R}, compares its {@code terms} with those of the first node to
 * come, and writes the number of its ranks to {@code node/R}. All nodes then wait for {@code met},
 * which is written once, by compare-and-set, either by the node that comes last or by one that
 * cannot continue, so that either all start their ranks or none does.
 */
final class NodeMeeting {
  private static final String HERE = "here/";
  private static final String TERMS = "terms";
  private static final String NODE = "node/";
  private static final String MET = "met";

  private final LaunchPlan plan;
  private final NodeKeys keys;
  private final HostPort address;
  private final Duration watchInterval;

  /** Whether this node has claimed its number. */
  private volatile boolean came;

  private volatile boolean met;

  /**
   * Creates a meeting.
   *
   * @param plan the plan of this node
   * @param keys the keys of the launchers
   * @param port the port of the store
   * @param watchInterval how long one wait for the others takes
   */
  NodeMeeting(LaunchPlan plan, NodeKeys keys, int port, Duration watchInterval) {
    this.plan = plan;
    this.keys = keys;
    this.address = new HostPort(plan.masterAddress(), port);
    this.watchInterval = watchInterval;
  }

  /**
   * Lets nodes that were started as several find that this one was started as the only one.
   *
   * @param plan the plan of one node
   * @param keys the keys of the launchers in the store that the node serves
   */
  static void announceAlone(LaunchPlan plan, NodeKeys keys) {
    var _ = keys.write(TERMS, LaunchTerms.of(plan).encode());
  }

  /** Meets the other nodes, as {@link LaunchRendezvous#join} says. */
  RankRange join(Consumer<String> messages) {
    Verdict meeting;
    try {
      if (!keys.store().compareSet(HERE + keys.node(), null, new byte[] {'1'}).stored()) {
        throw new LaunchException(1, "another launcher has already joined as node " + keys.node());
      }
      came = true;
      meeting = meet(messages);
    } catch (StoreException e) {
      String text =
          "the store of node 0 at %s stopped answering before all nodes had joined"
              .formatted(address);
      throw new LaunchException(1, text, e);
    }
    if (meeting.kind() != Kind.SUCCESS) {
      throw new LaunchException(meeting.code(), meeting.text());
    }
    met = true;
    List<Integer> sizes = Stream.of(meeting.text().split(" ")).map(Integer::valueOf).toList();
    int first = sizes.subList(0, keys.node()).stream().mapToInt(Integer::intValue).sum();
    int world = sizes.stream().mapToInt(Integer::intValue).sum();
    return new RankRange(first, world, address.host(), address.port());
  }

  /** Compares the terms, and waits until all nodes have come or one cannot continue. */
  private Verdict meet(Consumer<String> messages) {
    LaunchTerms mine = LaunchTerms.of(plan);
    byte[] agreed = keys.store().compareSet(TERMS, null, mine.encode()).value();
    Optional<String> difference = LaunchTerms.decode(requireNonNull(agreed)).differenceFrom(mine);
    if (difference.isPresent()) {
      Verdict verdict = Verdict.stopped(keys.node(), difference.get());
      refuse(verdict);
      return verdict;
    }
    var _ = keys.write(NODE + keys.node(), Integer.toString(plan.localSize()).getBytes(UTF_8));
    return keys.areSetByAll(NODE) ? allCame() : awaitOthersToCome(messages);
  }

  /** Ends the meeting for all nodes, unless they have met. */
  void refuse(Verdict verdict) {
    try {
      var _ = decide(verdict);
    } catch (StoreException e) {
      // The others notice by their own deadline.
    }
  }

  /**
   * Writes how the meeting ends unless that is already known, and returns the result that is then
   * known.
   */
  private Verdict decide(Verdict verdict) {
    return Verdict.decode(requireNonNull(keys.write(MET, verdict.encode())));
  }

  private Verdict allCame() {
    String sizes =
        keys.store().multiGet(keys.ofAllNodes(NODE)).stream()
            .map(bytes -> new String(bytes, UTF_8))
            .collect(Collectors.joining(" "));
    return decide(new Verdict(Kind.SUCCESS, keys.node(), -1, 0, sizes));
  }

  private Verdict awaitOthersToCome(Consumer<String> messages) {
    long start = System.nanoTime();
    boolean said = false;
    while (true) {
      Duration left = plan.rendezvousTimeout().minusNanos(System.nanoTime() - start);
      Duration next = said ? watchInterval : Notice.PATIENCE;
      boolean isLast = left.compareTo(next) <= 0;
      try {
        return Verdict.decode(keys.store().get(MET, isLast ? left : next));
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
    List<Integer> missing = keys.nodesWithout(NODE);
    if (missing.isEmpty()) {
      return allCame();
    }
    String text =
        ("%s of %d did not join at %s within %s (--rdzv-timeout of node %d); check that each was"
                + " started with the same --nnodes and its own --node-rank, and can reach that"
                + " address%s")
            .formatted(
                NodeKeys.named(missing),
                keys.nodes(),
                address,
                Notice.inWords(plan.rendezvousTimeout()),
                keys.node(),
                missing.contains(0)
                    ? "; another job, or a job of a single node, may be using it"
                    : "");
    return decide(Verdict.stopped(keys.node(), text));
  }

  private void sayWhoIsMissing(Consumer<String> messages) {
    List<Integer> missing = keys.nodesWithout(NODE);
    if (!missing.isEmpty()) {
      messages.accept(
          "waiting %s (--rdzv-timeout) for %s of %d to join at %s"
              .formatted(
                  Notice.atMost(plan.rendezvousTimeout()),
                  NodeKeys.named(missing),
                  keys.nodes(),
                  address));
    }
  }

  boolean came() {
    return came;
  }

  /**
   * Returns the other nodes that have come, including those started for more nodes than this one.
   */
  List<Integer> othersThatCame() {
    if (met) {
      return IntStream.range(1, keys.nodes()).boxed().toList();
    }
    return keys.store().listKeys().stream()
        .filter(key -> key.startsWith(HERE))
        .map(key -> Integer.valueOf(key.substring(HERE.length())))
        .filter(node -> node != 0)
        .sorted()
        .toList();
  }
}
