package dev.tutti.runtime.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.spi.Bootstrap;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class BootstrapTest {
  private static final int SIZE = 3;

  private final Store store = new HashStore();

  private Bootstrap bootstrap(int rank) {
    return new Bootstrap(store, "rank " + rank + " of group g", rank, SIZE, Time.SYSTEM);
  }

  private static long in(long time, TimeUnit unit) {
    return System.nanoTime() + unit.toNanos(time);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private interface Body<T> {
    T run(Bootstrap bootstrap);
  }

  private <T> List<T> onAll(Body<T> body) throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(SIZE)) {
      List<Callable<T>> ranks =
          IntStream.range(0, SIZE)
              .mapToObj(rank -> (Callable<T>) () -> body.run(bootstrap(rank)))
              .toList();
      return threads.invokeAll(ranks, 200, TimeUnit.SECONDS).stream()
          .map(Future::resultNow)
          .toList();
    }
  }

  @Test
  void allRanksGetAllValues() throws Exception {
    assertThat(
            onAll(
                bootstrap ->
                    bootstrap
                        .allGather(
                            "names",
                            bytes("r" + bootstrap.rank()),
                            "come",
                            in(120, TimeUnit.SECONDS))
                        .stream()
                        .map(String::new)
                        .toList()))
        .hasSize(SIZE)
        .allSatisfy(names -> assertThat(names).containsExactly("r0", "r1", "r2"));
  }

  @Test
  void allRanksGetTheValueOfTheRoot() throws Exception {
    assertThat(
            onAll(
                bootstrap ->
                    new String(
                        bootstrap.broadcast(
                            "table",
                            2,
                            bytes("r" + bootstrap.rank()),
                            "publish it",
                            in(120, TimeUnit.SECONDS)),
                        StandardCharsets.UTF_8)))
        .containsExactly("r2", "r2", "r2");
    assertThat(store.check(List.of("table/2"))).isTrue();
    assertThat(store.check(List.of("table/0"))).isFalse();
  }

  @Test
  void whoDoesNotComeIsNamed() {
    bootstrap(1).publish("names", bytes("r1"));
    assertThatThrownBy(
            () ->
                bootstrap(0)
                    .allGather("names", bytes("r0"), "say who it is", in(1, TimeUnit.MILLISECONDS)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageMatching("rank 0 of group g: rank 2 did not say who it is within \\d+ ms")
        .cause()
        .isInstanceOfSatisfying(
            PeerLateException.class, late -> assertThat(late.peers()).containsExactly(2));
  }

  @Test
  void ranksWaitForValuesThatTheyDoNotRead() {
    bootstrap(0).publish("names", bytes("r0"));
    bootstrap(1).publish("names", bytes("r1"));
    assertThat(bootstrap(0).isPublished("names")).isFalse();
    assertThatThrownBy(() -> bootstrap(0).await("names", "come", in(1, TimeUnit.MILLISECONDS)))
        .hasMessageMatching("rank 0 of group g: rank 2 did not come within \\d+ ms");
    bootstrap(2).publish("names", bytes("r2"));
    bootstrap(0).await("names", "come", in(120, TimeUnit.SECONDS));
    assertThat(bootstrap(0).isPublished("names")).isTrue();
  }

  @Test
  void allWhoDoNotComeAreNamed() {
    assertThatThrownBy(
            () -> bootstrap(1).broadcast("table", 0, new byte[0], "come", System.nanoTime()))
        .hasMessage("rank 1 of group g: rank 0 did not come within 0 ms");
    assertThatThrownBy(
            () -> bootstrap(1).collect("names", new int[] {2, 0}, "come", System.nanoTime()))
        .cause()
        .isInstanceOfSatisfying(
            PeerLateException.class, late -> assertThat(late.peers()).containsExactly(2, 0));
  }

  @Test
  void theFailureOfTheStoreIsNobodysLateness() {
    store.close();
    assertThatThrownBy(() -> bootstrap(1).collect("names", new int[] {0}, "come", 0))
        .isInstanceOf(StoreClosedException.class);
  }

  @Test
  void ranksAreChecked() {
    assertThatThrownBy(() -> bootstrap(SIZE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("rank 3 is not in [0, 3)");
  }
}
