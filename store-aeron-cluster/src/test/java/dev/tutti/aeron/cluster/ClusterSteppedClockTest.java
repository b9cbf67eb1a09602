package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.SteppedClocks;
import dev.tutti.aeron.SteppedClocks.Counter;
import dev.tutti.aeron.SteppedClocks.Stepped;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Steps the wall clock of members and clients, each a process of its own. */
@Timeout(600)
class ClusterSteppedClockTest {
  private static final long YEAR = 365 * 24 * 3600L;

  @TempDir private Path directory;

  @Test
  void aClusterAndItsClientsGoOn() throws Exception {
    SteppedClocks clocks = new SteppedClocks(directory);
    String places = TestCluster.freeMembers();
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withDirectory(directory)
            .withToken(JobToken.NONE)
            .withTimeout(Duration.ofSeconds(100));
    List<Stepped> members = new ArrayList<>();
    try {
      for (int i = 0; i < TestCluster.SIZE; i++) {
        int number = i;
        members.add(
            clocks
            .new Stepped(
                "member" + i,
                all -> ClusterChild.start("member", number, all),
                "MEMBERS=" + places,
                "DATA=" + directory.resolve("m" + i)));
      }
      for (Stepped member : members) {
        assertThat(member.child.line()).isEqualTo("READY true");
      }
      try (AeronClusterStore store = new AeronClusterStore(places, options);
          Stepped client =
              clocks
              .new Stepped(
                  "client", all -> ClusterChild.start("wait", 0, all), "MEMBERS=" + places)) {
        assertThat(client.child.line()).isEqualTo("READY false");
        int leader = store.leader();
        Counter counter = new Counter(store);
        for (long seconds : new long[] {3600, -3600, YEAR}) {
          members.get(leader).step(seconds);
          SteppedClocks.call(counter);
          members.get((leader + 1) % TestCluster.SIZE).step(-seconds);
          SteppedClocks.call(counter);
        }
        client.step(3600);
        SteppedClocks.call(counter);
        assertThat(store.leader()).isEqualTo(leader);
        store.set("go", "");
        assertThat(client.child.line()).isEqualTo("DONE");
      }
    } finally {
      for (Stepped member : members) {
        member.close();
      }
    }
  }
}
