package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.OtherHost;
import dev.tutti.aeron.StoreChild;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Makes the link between members and a client, in two network namespaces, slow. */
@Tag("full")
class SlowHostTest {
  private static final int PORT = 28_900;

  @TempDir private Path directory;

  /** The value fills the link for longer than the lease, and than a client waits for an answer. */
  @Test
  void aHostWithASlowLinkIsNotLost() throws Exception {
    int bytes = 700_000;
    try (OtherHost elsewhere = new OtherHost(50_000)) {
      String members =
          IntStream.range(0, TestCluster.SIZE)
              .mapToObj(member -> elsewhere.here + ":" + (PORT + member * ClusterMembers.PORTS))
              .collect(Collectors.joining(","));
      try (TestCluster cluster =
              new TestCluster(directory, JobToken.NONE, Long.MAX_VALUE, members);
          StoreChild client =
              ClusterChild.start(
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
