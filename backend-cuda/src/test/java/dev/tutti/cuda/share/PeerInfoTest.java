package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.store.HashStore;
import java.util.List;
import org.junit.jupiter.api.Test;

class PeerInfoTest {
  private static PeerInfo on(String host, String device) {
    return new PeerInfo(host, "a process", device, false, 132, "limit=1", "");
  }

  private static PeerInfo with(int rank, int multiprocessors, String choices) {
    return new PeerInfo("host", "a process", "device " + rank, false, multiprocessors, choices, "");
  }

  @Test
  void ranksOfOtherChoicesAreRefusedByAll() throws Exception {
    Ranks.run(
        new HashStore(),
        3,
        exchange -> {
          int rank = exchange.rank();
          PeerInfo own = with(rank, 132, "limit=" + rank / 2);
          assertThatThrownBy(() -> PeerInfo.meet(exchange, own, Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessage(
                  "rank "
                      + rank
                      + ": rank 2 has limit=1, but rank 0 has limit=0; these settings must be the"
                      + " same on all ranks");
          return null;
        });
  }

  @Test
  void theSmallestDeviceCounts() throws Exception {
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          PeerInfo own = with(exchange.rank(), 108 + 24 * exchange.rank(), "");
          List<PeerInfo> all = PeerInfo.meet(exchange, own, Ranks.soon());
          assertThat(PeerInfo.leastMultiprocessors(all)).isEqualTo(108);
          return null;
        });
  }

  @Test
  void processesOfADeviceAreCounted() {
    List<PeerInfo> all =
        List.of(
            new PeerInfo("host", "first", "device 0", true, 132, "", ""),
            new PeerInfo("host", "first", "device 0", true, 132, "", ""),
            new PeerInfo("host", "second", "device 0", true, 132, "", ""),
            new PeerInfo("host", "third", "device 1", true, 132, "", ""));
    assertThat(PeerInfo.processesOnDevice(all, 0)).isEqualTo(2);
    assertThat(PeerInfo.processesOnDevice(all, 3)).isEqualTo(1);
  }

  @Test
  void ranksOfSeveralHostsAreRefusedByAll() throws Exception {
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          int rank = exchange.rank();
          assertThatThrownBy(
                  () -> PeerInfo.meet(exchange, on("host " + rank, "device " + rank), Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("rank " + rank)
              .hasMessageContaining("rank 1 runs on another host than rank 0");
          return null;
        });
  }

  @Test
  void ranksOfOneHostMeet() throws Exception {
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          int rank = exchange.rank();
          List<PeerInfo> all = PeerInfo.meet(exchange, on("host", "device " + rank), Ranks.soon());
          assertThat(all).extracting(PeerInfo::pciBusId).containsExactly("device 0", "device 1");
          assertThat(PeerInfo.mostOnOneDevice(all)).isOne();
          return null;
        });
  }
}
