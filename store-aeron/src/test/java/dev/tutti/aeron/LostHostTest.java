package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.cluster.ClusterMembers;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/**
 * Cuts the link between two network namespaces, one of which contains a client, or makes it slow.
 */
@Tag("full")
class LostHostTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int PORT = 28_900;

  @TempDir private Path directory;

  private static void run(String command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command.split(" ")).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(command + ": " + output.strip());
    }
  }

  /** A namespace with a single link to this one. */
  private static final class Elsewhere implements AutoCloseable {
    final String name = "tutti" + ProcessHandle.current().pid();
    final String wire = "tt" + ProcessHandle.current().pid();
    final String here = "10.213." + (ProcessHandle.current().pid() & 0xff) + ".1";
    private @Nullable SlowLink slow;

    /** Joins the namespaces by a link, or by a slow one if its rate is positive. */
    Elsewhere(long bytesPerSecond) throws IOException, InterruptedException {
      try {
        run("ip netns add " + name);
        String there = here.substring(0, here.length() - 1) + "2";
        if (bytesPerSecond > 0) {
          slow = new SlowLink(wire, "wire", 0, 1, bytesPerSecond);
          run("ip link set wire netns " + name);
        } else {
          run("ip link add " + wire + " type veth peer name wire netns " + name);
        }
        run("ip address add " + here + "/30 dev " + wire);
        run("ip link set " + wire + " up");
        run("ip -n " + name + " address add " + there + "/30 dev wire");
        run("ip -n " + name + " link set wire up");
        run("ip -n " + name + " link set lo up");
      } catch (IOException e) {
        close();
        String reason = "needs root to make a network namespace: " + e.getMessage();
        System.out.println("skipped: " + reason);
        throw new TestAbortedException(reason, e);
      }
    }

    void cut() throws IOException, InterruptedException {
      run("ip -n " + name + " link set wire down");
    }

    @Override
    public void close() {
      SlowLink ownLink = slow;
      if (ownLink != null) {
        ownLink.close();
      }
      for (String command : List.of("ip link delete " + wire, "ip netns delete " + name)) {
        try {
          run(command);
        } catch (IOException e) {
          System.out.println("already gone: " + e.getMessage());
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  @Test
  void aLostHostIsNoticedOnBothSidesWithinTheLease() throws Exception {
    try (Elsewhere elsewhere = new Elsewhere(0);
        AeronStoreServer server =
            new AeronStoreServer(
                AeronStoreOptions.of("0.0.0.0", 0)
                    .withDirectory(directory)
                    .withToken(JobToken.NONE));
        AeronStore store =
            new AeronStore(
                AeronStoreOptions.of("127.0.0.1", server.port())
                    .withDirectory(directory)
                    .withTimeout(LONG)
                    .withToken(JobToken.NONE));
        StoreChild client =
            StoreChild.start(
                List.of("ip", "netns", "exec", elsewhere.name),
                "128m",
                "will",
                server.port(),
                "TUTTI_AERON_DIR=" + directory,
                "TUTTI_AERON_TRANSPORT=udp",
                "HOST=" + elsewhere.here)) {
      assertThat(client.line()).isEqualTo("READY false");
      assertThat(store.check(List.of("will/1"))).isFalse();
      long start = System.nanoTime();
      elsewhere.cut();
      assertThat(store.get("will/1")).asString(StandardCharsets.UTF_8).isEqualTo("gone");
      assertThat(client.line()).startsWith("FAILED").contains("is gone");
      // The lease, which the kernel counts in seconds, plus the time that a busy machine needs to
      // report it; a call would wait twice as long.
      assertThat(System.nanoTime() - start).isLessThan(LONG.toNanos() / 2);
    }
  }

  /** The value fills the link for longer than the lease, and than a client waits for an answer. */
  @Test
  void aHostWithASlowLinkIsNotLost() throws Exception {
    int bytes = 700_000;
    try (Elsewhere elsewhere = new Elsewhere(50_000)) {
      String members =
          IntStream.range(0, TestCluster.SIZE)
              .mapToObj(member -> elsewhere.here + ":" + (PORT + member * ClusterMembers.PORTS))
              .collect(Collectors.joining(","));
      try (TestCluster cluster =
              new TestCluster(directory, JobToken.NONE, Long.MAX_VALUE, members);
          StoreChild client =
              StoreChild.start(
                  List.of("ip", "netns", "exec", elsewhere.name),
                  "128m",
                  "large",
                  0,
                  "MEMBERS=" + members,
                  "COUNT=" + bytes,
                  "TUTTI_AERON_DIR=" + directory);
          AeronClusterStore store = cluster.connect()) {
        assertThat(client.line()).isEqualTo("READY false");
        assertThat(store.get("large")).hasSize(bytes);
      }
    }
  }
}
