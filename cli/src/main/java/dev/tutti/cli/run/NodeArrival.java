package dev.tutti.cli.run;

import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.RankClaim;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;

/** The arrival of a node in a job whose nodes come and go. */
final class NodeArrival {
  private final LaunchPlan plan;
  private final NodeRange range;
  private final NodeLog log;
  private final NodePulse pulse;
  private final String launcher;
  private final Duration interval;
  private final Time time;
  private final Consumer<String> messages;

  /**
   * Creates it.
   *
   * @param plan the plan of this node
   * @param range how many nodes there may be
   * @param log the log of the nodes
   * @param pulse the heartbeat of this launcher
   * @param launcher the name of this launcher
   * @param interval how long one wait for an entry takes
   * @param messages receives what it waits for
   */
  NodeArrival(
      LaunchPlan plan,
      NodeRange range,
      NodeLog log,
      NodePulse pulse,
      String launcher,
      Duration interval,
      Time time,
      Consumer<String> messages) {
    this.plan = plan;
    this.range = range;
    this.log = log;
    this.pulse = pulse;
    this.launcher = launcher;
    this.interval = interval;
    this.time = time;
    this.messages = messages;
  }

  /**
   * Enters the job, and waits until it begins.
   *
   * @param ending returns the entry that ends the wait for other nodes, from the reason
   * @return this node
   * @throws LaunchException if it cannot enter, or too few others come in time
   */
  NodeMember arrive(Function<String, NodeEvent> ending) {
    long deadline = time.deadline(plan.rendezvousTimeout());
    come(deadline);
    awaitBegin(deadline, ending);
    requireMember();
    return log.look(roster -> roster.at(plan.nodeRank())).orElseThrow();
  }

  /** Enters the job, once nobody else has the number of this node. */
  private void come(long deadline) {
    int node = plan.nodeRank();
    NodeEvent came = new NodeEvent.Came(node, launcher, plan.localSize(), RankClaim.host());
    boolean said = false;
    while (true) {
      pulse.beat();
      if (log.append(came, roster -> roster.verdict().isEmpty() && roster.at(node).isEmpty())) {
        log.leaveWill(new NodeEvent.Gone(node, launcher, "its launcher ended"));
        return;
      }
      requireRunning();
      Optional<NodeMember> other = log.look(roster -> roster.at(node));
      if (other.isEmpty()) {
        throw new LaunchException(1, "the job is about to end: a node has done its work");
      }
      if (pulse.isAlive(other.get().launcher()) || deadline - time.nanoTime() <= 0) {
        throw new LaunchException(1, "another launcher has already joined as node " + node);
      }
      if (!said) {
        said = true;
        messages.accept(
            "waiting for the launcher that was node %d before to be given up".formatted(node));
      }
      boolean _ = pulse.awaitEntry(log.nextKey(), interval);
    }
  }

  private void requireRunning() {
    log.look(NodeRoster::verdict)
        .ifPresent(
            verdict -> {
              String how = verdict.kind() == Kind.SUCCESS ? "all ranks succeeded" : verdict.text();
              throw new LaunchException(
                  verdict.kind() == Kind.SUCCESS ? 1 : verdict.code(), "the job has ended: " + how);
            });
  }

  private void requireMember() {
    if (!log.look(roster -> roster.has(plan.nodeRank(), launcher))) {
      throw new LaunchException(1, "the other nodes gave up this one before the job began");
    }
  }

  private void awaitBegin(long deadline, Function<String, NodeEvent> ending) {
    boolean said = false;
    while (!log.look(NodeRoster::hasBegun)) {
      requireRunning();
      requireMember();
      long left = deadline - time.nanoTime();
      if (left <= 0) {
        giveUp(ending);
        continue;
      }
      Duration next = said ? interval : Notice.PATIENCE;
      boolean came =
          pulse.awaitEntry(log.nextKey(), next.toNanos() < left ? next : Duration.ofNanos(left));
      if (!came && !said) {
        said = true;
        messages.accept(
            "waiting %s (--rdzv-timeout) for %s"
                .formatted(Notice.atMost(plan.rendezvousTimeout()), missing()));
      }
      pulse.beat();
    }
  }

  /** Ends the wait, unless the job has begun by now. */
  private void giveUp(Function<String, NodeEvent> ending) {
    String text =
        "waited %s (--rdzv-timeout) for %s"
            .formatted(Notice.inWords(plan.rendezvousTimeout()), missing());
    if (log.append(ending.apply(text), roster -> !roster.hasBegun())) {
      throw new LaunchException(1, text);
    }
  }

  private String missing() {
    return "%d of at least %d nodes (--nnodes) to join"
        .formatted(range.fewest() - log.look(NodeRoster::nodes).size(), range.fewest());
  }
}
