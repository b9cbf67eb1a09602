package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.Until;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests which ends of links count as deaths. */
class PeerDeathsTest {
  private static final int SIZE = 3;

  private final List<RankLinks> links = new ArrayList<>();
  private final BlockingQueue<Throwable> told = new LinkedBlockingQueue<>();
  private PeerDeaths deaths;
  private PeerDeaths peer;

  @BeforeEach
  void open() throws Exception {
    HashStore store = new HashStore();
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      List<Future<RankLinks>> opened = new ArrayList<>();
      for (int r = 0; r < SIZE; r++) {
        StoreExchange exchange = new StoreExchange(store, "links", r, SIZE);
        long deadline = Time.SYSTEM.deadline(Until.LONG);
        opened.add(
            threads.submit(
                () ->
                    RankLinks.open(
                        InetAddress::getLoopbackAddress, null, JobToken.NONE, exchange, deadline)));
      }
      for (Future<RankLinks> each : opened) {
        links.add(each.get());
      }
    }
    deaths = new PeerDeaths(links.get(0), 0, SIZE, (cause, rank) -> told.add(cause));
    peer = new PeerDeaths(links.get(1), 1, SIZE, (cause, rank) -> {});
  }

  @AfterEach
  void close() {
    deaths.close();
    links.forEach(RankLinks::close);
  }

  private void assertLost(int rank) throws Exception {
    assertThat(told.poll(60, TimeUnit.SECONDS))
        .isInstanceOfSatisfying(
            PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(rank))
        .hasMessage(
            "rank 0: rank " + rank + " is gone, or its group failed: its links were closed");
  }

  @Test
  void aPeerWithoutAFarewellIsLostAndOnlyTheFirstOne() throws Exception {
    links.get(1).close();
    assertLost(1);
    deaths.ended(2);
    assertThat(told).isEmpty();
  }

  @Test
  void aPeerWhoseGroupFailedIsLost() throws Exception {
    peer.abort();
    peer.close();
    assertLost(1);
  }

  @Test
  void aPeerThatTookItsLeaveIsNotLost() throws Exception {
    peer.close();
    deaths.take(1, 1, 0, 0, 0); // as its farewell may still be on its way
    deaths.ended(1);
    assertThat(told).isEmpty();
    deaths.ended(2);
    assertLost(2);
  }

  @Test
  void nobodyIsLostOnceTheGroupFailed() {
    deaths.abort();
    deaths.ended(1);
    assertThat(told).isEmpty();
  }
}
