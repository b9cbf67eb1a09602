package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.store.HashStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StoreExchangeTest {
  private final HashStore store = new HashStore();

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static List<String> texts(List<byte[]> values) {
    return values.stream().map(v -> new String(v, StandardCharsets.UTF_8)).toList();
  }

  @Test
  void allRanksGetAllValuesAndNothingStays() throws Exception {
    for (int size : new int[] {1, 2, 5}) {
      List<String> expected = IntStream.range(0, 50 * size).mapToObj(i -> "v" + i).toList();
      List<List<String>> all =
          Ranks.run(
              store,
              size,
              exchange -> {
                List<String> got = new java.util.ArrayList<>();
                for (int i = 0; i < 50; i++) {
                  byte[] own = bytes("v" + (i * exchange.size() + exchange.rank()));
                  got.addAll(texts(exchange.allGather(own, Ranks.soon())));
                }
                exchange.barrier(Ranks.soon());
                return got;
              });
      assertThat(all).hasSize(size).allSatisfy(got -> assertThat(got).isEqualTo(expected));
      assertThat(store.listKeys()).isEmpty();
    }
  }

  @Test
  void groupsOfDifferentPrefixesNumberTheirExchangesThemselves() throws Exception {
    List<Integer> sums =
        Ranks.run(
            store,
            2,
            exchange -> {
              // Rank 0 has already had an exchange in another group.
              StoreExchange alone = new StoreExchange(store, "other" + exchange.rank(), 0, 1);
              if (exchange.rank() == 0) {
                alone.barrier(Ranks.soon());
              }
              return exchange.allGather(new byte[exchange.rank() + 1], Ranks.soon()).stream()
                  .mapToInt(v -> v.length)
                  .sum();
            });
    assertThat(sums).containsExactly(3, 3);
  }

  @Test
  void whoWaitsForTheUsersOfSomethingIsToldOfTheLast() throws Exception {
    Ranks.run(
        store,
        3,
        exchange -> {
          if (exchange.rank() == 0) {
            assertThat(exchange.awaitLeft("thing", Duration.ofMinutes(2))).isTrue();
          } else {
            assertThat(exchange.leave("thing", 2)).isTrue();
          }
          return null;
        });
    assertThat(store.listKeys()).isEmpty();
  }

  @Test
  void whoWaitedInVainWaitsNoMore() {
    StoreExchange exchange = new StoreExchange(store, "test", 0, 2);
    assertThat(exchange.awaitLeft("thing", Duration.ofMillis(1))).isFalse();
    assertThat(exchange.awaitLeft("other", Duration.ofDays(1))).isFalse();
    assertThat(exchange.leave("other", 1)).isTrue();
    assertThat(exchange.awaitLeft("other", Duration.ofDays(1))).isTrue();
    store.close();
    assertThat(exchange.leave("thing", 1)).isFalse();
    assertThat(exchange.awaitLeft("thing", Duration.ofDays(1))).isFalse();
  }

  @Test
  void whoDoesNotComeIsNamed() {
    StoreExchange exchange = new StoreExchange(store, "test", 1, 4);
    store.set("test/0/3", bytes("x"));
    assertThatThrownBy(() -> exchange.allGather(bytes("y"), Ranks.inMillis(50)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageMatching("rank 1/4: ranks 0, 2 did not reach exchange test/0 within \\d+ ms");
  }

  @Test
  void ranksAreChecked() {
    assertThatThrownBy(() -> new StoreExchange(store, "p", 2, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("rank 2 is not in [0, 2)");
  }
}
