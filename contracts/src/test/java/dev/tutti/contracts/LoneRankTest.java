package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.opentest4j.TestAbortedException;

/** Tests worlds with only one rank in each JVM, using two such worlds in this JVM. */
@Timeout(300)
class LoneRankTest {
  private final HashStore store = new HashStore();

  /** One of two ranks. */
  private record Half(int rank, HashStore store) implements ContractSubject {
    @Override
    public BackendProvider provider() {
      return new ThreadedProvider();
    }

    /** Lets the deadline of a group, which is half of this, be far off. */
    @Override
    public Duration timeout() {
      return Duration.ofMinutes(8);
    }

    @Override
    public OptionalInt onlyRank() {
      return OptionalInt.of(rank);
    }

    @Override
    public GroupOptions options(GroupOptions options) {
      return options.withStore(store.duplicate());
    }
  }

  private ContractWorld world(int rank) {
    return new ContractWorld(new Half(rank, store), 2);
  }

  private CompletableFuture<Float> sum(int rank) {
    return start(
        () -> {
          Float[] sum = new Float[1];
          world(rank)
              .run(
                  member -> {
                    Tensor tensor = Tensor.of(member.rank() + 1f);
                    member.group().allReduce(tensor, ReduceOp.SUM);
                    member.meet();
                    sum[0] = tensor.toFloatArray()[0];
                  });
          return sum[0];
        });
  }

  private static <T> CompletableFuture<T> start(Callable<T> call) {
    CompletableFuture<T> future = new CompletableFuture<>();
    Thread.ofPlatform()
        .start(
            () -> {
              try {
                future.complete(call.call());
              } catch (Throwable e) {
                future.completeExceptionally(e);
              }
            });
    return future;
  }

  @Test
  void theRanksOfTwoWorldsMeet() throws Exception {
    CompletableFuture<Float> first = sum(0);
    CompletableFuture<Float> second = sum(1);
    assertThat(first.get(2, TimeUnit.MINUTES)).isEqualTo(3f);
    assertThat(second.get(2, TimeUnit.MINUTES)).isEqualTo(3f);
  }

  @Test
  void aRankThatFailsEndsTheOther() {
    CompletableFuture<Float> waiting = sum(0);
    CompletableFuture<Void> failing =
        start(
            () -> {
              world(1)
                  .run(
                      member -> {
                        throw new IllegalStateException("not today");
                      });
              return null;
            });
    assertThatThrownBy(() -> failing.get(2, TimeUnit.MINUTES))
        .isInstanceOf(ExecutionException.class)
        .hasRootCauseMessage("not today");
    assertThatThrownBy(() -> waiting.get(2, TimeUnit.MINUTES))
        .isInstanceOf(ExecutionException.class)
        .hasStackTraceContaining("not today");
  }

  @Test
  void whatComparesRanksIsSkipped() {
    assertThatThrownBy(() -> world(0).collect(Member::rank))
        .isInstanceOf(TestAbortedException.class)
        .hasMessage("compares the ranks, which run in other JVMs here");
  }
}
