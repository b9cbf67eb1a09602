package dev.tutti.aeron.cluster;

import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.shared.FreePorts;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A cluster of three members in this process. */
final class TestCluster implements AutoCloseable {
  static final int SIZE = 3;

  /** Longer than a busy machine makes a leader, or those who elect another, stand still. */
  static final Duration LEASE = Duration.ofSeconds(10);

  final String members;
  private final Path directory;
  private final JobToken token;
  private final long snapshotBytes;
  private final List<AeronClusterServer> servers = new ArrayList<>();

  TestCluster(Path directory, JobToken token) {
    this(directory, token, Long.MAX_VALUE);
  }

  TestCluster(Path directory, JobToken token, long snapshotBytes) {
    this(directory, token, snapshotBytes, freeMembers());
  }

  TestCluster(Path directory, JobToken token, long snapshotBytes, String members) {
    this.snapshotBytes = snapshotBytes;
    this.directory = directory;
    this.token = token;
    this.members = members;
    for (int i = 0; i < SIZE; i++) {
      servers.add(start(i));
    }
  }

  /** Returns members on this host with ports that are free now. */
  static String freeMembers() {
    int first = FreePorts.consecutive(SIZE * ClusterMembers.PORTS);
    return IntStream.range(0, SIZE)
        .mapToObj(member -> "127.0.0.1:" + (first + member * ClusterMembers.PORTS))
        .collect(Collectors.joining(","));
  }

  /** Returns the only member of a cluster on this host with ports that are free now. */
  static String freeMember() {
    return "127.0.0.1:" + FreePorts.consecutive(ClusterMembers.PORTS);
  }

  AeronStoreOptions options() {
    return AeronStoreOptions.of("localhost", 0)
        .withToken(token)
        .withLease(LEASE)
        .withDirectory(directory)
        .withTimeout(Duration.ofSeconds(100));
  }

  AeronClusterServer start(int member) {
    return new AeronClusterServer(
        members,
        member,
        directory.resolve("m" + member),
        options(),
        snapshotBytes,
        ClusterNode.MOST_CLIENTS,
        Time.SYSTEM);
  }

  AeronClusterStore connect() {
    return new AeronClusterStore(members, options());
  }

  Optional<AeronClusterServer> leader() {
    return servers.stream().filter(AeronClusterServer::isLeader).findFirst();
  }

  List<AeronClusterServer> servers() {
    return servers;
  }

  /** Stops a member, and starts it again. */
  void restart(int member) {
    servers.get(member).close();
    servers.set(member, start(member));
  }

  /** Stops all members, then starts them again. */
  void restartAll() {
    stopAll();
    startAll();
  }

  /** Stops all members. */
  void stopAll() {
    servers.forEach(AeronClusterServer::close);
  }

  /** Starts all members again. */
  void startAll() {
    for (int i = 0; i < SIZE; i++) {
      servers.set(i, start(i));
    }
  }

  @Override
  public void close() {
    stopAll();
  }
}
