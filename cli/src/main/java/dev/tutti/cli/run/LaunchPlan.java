package dev.tutti.cli.run;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * What {@code tutti run} starts on this node, and how.
 *
 * @param command the program and arguments of every rank
 * @param localSize the number of ranks on this node
 * @param nodes the number of nodes, or the largest one
 * @param nodeRank the number of this node, from 0; node 0 hosts the store
 * @param masterAddress the address at which node 0 is reached
 * @param masterPort the port of the store; 0 takes a free one, on node 0 only
 * @param maxRestarts how often all ranks are restarted after a failure
 * @param runId the name of the job
 * @param role the name of the only role
 * @param logDirectory the directory to which each rank's output is also written, if any
 * @param tailLines how many of a failed rank's last lines are shown
 * @param linger how long ranks may continue after the first failure, before SIGTERM
 * @param grace the time between SIGTERM and SIGKILL
 * @param rendezvousTimeout the longest wait for the other nodes
 * @param environment the environment on which every rank's environment is based
 * @param aotCache the cache from which Java ranks start, if any
 * @param isElastic whether another process takes the place of a rank that is lost
 * @param range how nodes come and go while the job runs, if they do
 */
public record LaunchPlan(
    List<String> command,
    int localSize,
    int nodes,
    int nodeRank,
    String masterAddress,
    int masterPort,
    int maxRestarts,
    String runId,
    String role,
    Optional<Path> logDirectory,
    int tailLines,
    Duration linger,
    Duration grace,
    Duration rendezvousTimeout,
    Map<String, String> environment,
    Optional<AotCache> aotCache,
    boolean isElastic,
    Optional<NodeRange> range) {

  private static final Pattern NAME = Pattern.compile("[^/\\\\\\p{Cntrl}]{1,128}");

  /** Validates the numbers, and copies the list and the map. */
  public LaunchPlan {
    command = List.copyOf(command);
    environment = Map.copyOf(environment);
    if (command.isEmpty()) {
      throw new IllegalArgumentException("no command to run");
    }
    if (aotCache.isPresent()) {
      AotCache.check(command);
    }
    require(localSize >= 1, "--nproc must be at least 1, not " + localSize);
    require(nodes >= 1, "--nnodes must be at least 1, not " + nodes);
    require(
        range.isEmpty() || isElastic,
        "--nnodes=MIN:MAX means that nodes come and go while others continue: give --elastic, too");
    require(
        nodeRank >= 0 && nodeRank < nodes,
        "--node-rank must be from 0 to " + (nodes - 1) + ", not " + nodeRank);
    require(
        masterPort >= 0 && masterPort <= 65535,
        "--master-port must be from 0 to 65535, not " + masterPort);
    require(
        masterPort > 0 || nodeRank == 0 || range.flatMap(NodeRange::store).isPresent(),
        "--master-port must be given, and must not be 0, on nodes other than node 0");
    require(maxRestarts >= 0, "--max-restarts must not be negative: " + maxRestarts);
    require(tailLines >= 0, "--tail must not be negative: " + tailLines);
    require(rendezvousTimeout.isPositive(), "--rdzv-timeout must be longer than 0");
    // The id names a log directory, which must not lie outside the root.
    require(
        NAME.matcher(runId).matches() && !runId.equals(".") && !runId.equals(".."),
        "--rdzv-id must be a name without '/' or control characters, not '" + runId + "'");
  }

  /** Returns how many nodes there may be, as {@code --nnodes} says. */
  String nnodes() {
    return range
        .map(each -> each.fewest() + ":" + each.most())
        .orElseGet(() -> Integer.toString(nodes));
  }

  /**
   * Returns the program and arguments of a rank.
   *
   * @param local the number of the rank on this node
   */
  List<String> command(int local) {
    return aotCache.map(cache -> cache.command(command, local)).orElse(command);
  }

  private static void require(boolean holds, String message) {
    if (!holds) {
      throw new IllegalArgumentException(message);
    }
  }
}
