package dev.tutti.aeron.cluster;

import dev.tutti.Store;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.StoreChild;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** The main class of a child process that is a member of a cluster, or a client of one. */
final class ClusterChild {
  private ClusterChild() {}

  public static void main(String[] args) {
    String members = System.getenv("MEMBERS");
    AeronStoreOptions options = AeronStoreOptions.of("localhost", 0);
    if (args[0].equals("member")) {
      runMember(members, Integer.parseInt(args[1]), options);
      return;
    }
    try (Store store = new AeronClusterStore(members, options)) {
      StoreChild.runClient(args[0], store);
    }
  }

  private static void runMember(String members, int number, AeronStoreOptions options) {
    Time time = StuckLog.isUsed() ? new FastTime(StuckLog::isStuck) : Time.SYSTEM;
    try (AeronClusterServer server =
        new AeronClusterServer(
            members,
            number,
            Path.of(System.getenv("DATA")),
            options,
            Long.MAX_VALUE,
            ClusterNode.MOST_CLIENTS,
            time)) {
      while (!server.isReady() && server.isRunning()) {
        LockSupport.parkNanos(1_000_000);
      }
      System.out.println("READY " + server.isRunning());
      Thread input = Thread.ofPlatform().daemon().start(ClusterChild::awaitEnd);
      while (server.isRunning() && input.isAlive()) {
        LockSupport.parkNanos(10_000_000);
      }
    }
  }

  private static void awaitEnd() {
    try {
      System.in.read();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Starts a process.
   *
   * @param role one of member, or of the roles of a client of {@link StoreChild}
   * @param number the number of a member
   * @param environment additional variables, as NAME=VALUE; MEMBERS names the members, DATA a
   *     member's folder
   */
  static StoreChild start(String role, int number, String... environment) throws IOException {
    return start(List.of(), "128m", role, number, environment);
  }

  /** Starts a process with a command that runs another command. */
  static StoreChild start(
      List<String> by, String heap, String role, int number, String... environment)
      throws IOException {
    return StoreChild.start(ClusterChild.class, by, heap, role, number, environment);
  }
}
