package dev.tutti.gloo.transport.connect;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.spi.Bootstrap;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(300)
class AddressExchangeTest {
  private static final int LARGE = AddressExchange.LARGE;

  private final HashStore store = new HashStore();

  private static RankBlob blob(int rank, int size, boolean tutti) {
    return new RankBlob(
        "host", address(rank, tutti), LongStream.range(0, size).map(n -> n + 7L * rank).toArray());
  }

  private static PeerAddress address(int rank, boolean tutti) {
    return new PeerAddress(
        new InetSocketAddress(InetAddress.getLoopbackAddress(), 1000 + rank), -1, tutti, 1, 0);
  }

  private AddressExchange exchange(int rank, int size, Duration timeout) {
    Bootstrap bootstrap = new Bootstrap(store, "rank " + rank, rank, size, Time.SYSTEM);
    long deadline = Time.SYSTEM.deadline(timeout);
    return AddressExchange.of(bootstrap, blob(rank, size, true), RankBlob::toBytes, deadline);
  }

  /** Exchanges the addresses of some ranks, and returns what each of them got. */
  private List<AddressExchange> among(int from, int to, int size) throws Exception {
    List<AddressExchange> results = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<AddressExchange>> all = new ArrayList<>();
      for (int rank = from; rank < to; rank++) {
        int own = rank;
        all.add(threads.submit(() -> exchange(own, size, Duration.ofMinutes(5))));
      }
      for (Future<AddressExchange> each : all) {
        results.add(each.get());
      }
    }
    return results;
  }

  private static void assertAddresses(AddressExchange exchange, int size) {
    assertThat(exchange.published()).hasSize(size);
    for (int rank = 0; rank < size; rank++) {
      RankBlob read = RankBlob.read(exchange.published().get(rank), exchange.identifiers());
      assertThat(read.address().socket().getPort()).isEqualTo(1000 + rank);
      if (exchange.identifiers() > 0) {
        assertThat(read.identifiers()[1]).isEqualTo(1 + 7L * rank);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, LARGE - 1})
  void smallGroupsReadIdentifiers(int size) throws Exception {
    for (AddressExchange each : among(0, size, size)) {
      assertThat(each.identifiers()).isEqualTo(size);
      assertAddresses(each, size);
    }
    assertThat(store.check(List.of("tutti/address/0"))).isFalse();
  }

  @ParameterizedTest
  @ValueSource(ints = {LARGE, 200})
  void largeGroupsReadAddressesAlone(int size) throws Exception {
    int brief = new RankBlob("host", address(0, true), new long[0]).toBytes().length;
    for (AddressExchange each : among(0, size, size)) {
      assertThat(each.identifiers()).isZero();
      assertThat(each.published()).allMatch(bytes -> bytes.length == brief);
      assertAddresses(each, size);
    }
  }

  /** A rank of PyTorch publishes only what Gloo does, before or after the others. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void allReadIdentifiersBesideOnePytorchRank(boolean first) throws Exception {
    int size = LARGE + 1;
    byte[] published = blob(0, size, false).toBytes();
    if (first) {
      store.set("0/0", published);
    }
    try (ExecutorService other = Executors.newSingleThreadExecutor()) {
      if (!first) {
        Future<?> _ =
            other.submit(
                () -> {
                  store.await(List.of("0/" + (size - 1)));
                  store.set("0/0", published);
                });
      }
      for (AddressExchange each : among(1, size, size)) {
        assertThat(each.identifiers()).isEqualTo(size);
        assertAddresses(each, size);
      }
    }
  }

  @Test
  void namesTheRanksThatDoNotCome() {
    for (int rank = 1; rank < LARGE; rank++) {
      if (rank != 9) {
        store.set("0/" + rank, new byte[0]);
      }
    }
    assertThatThrownBy(() -> exchange(0, LARGE, Duration.ofMillis(10)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank 9 did not publish a Gloo address within");
  }
}
