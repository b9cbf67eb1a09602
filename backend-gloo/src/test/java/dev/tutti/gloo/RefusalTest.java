package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.MismatchException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.store.HashStore;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what a collective leaves behind if it rejects a call after it has begun. */
@Timeout(300)
class RefusalTest {
  @Test
  void messagesAndLaterCollectivesGoOn(@TempDir Path directory) throws Exception {
    GlooWorld.run(
        2,
        GlooWorld.settings(),
        new HostsProvider(directory, rank -> 0),
        group -> {
          int peer = 1 - group.rank();
          // Only at the rendezvous do the ranks find out that they cannot read such small tensors.
          CallOptions direct = CallOptions.DEFAULT.withAlgorithm("direct");
          Tensor in = Tensor.of(-1f);
          Work receive = group.recv(in, peer, 0, CallOptions.ASYNC);
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, direct))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("algorithm direct needs tensors");
          assertThat(receive.isCompleted()).isFalse();
          Tensor sum = Tensor.of(1f, 2f);
          group.allReduce(sum);
          assertThat(sum.toFloatArray()).containsExactly(2, 4);
          group.send(Tensor.of((float) group.rank()), peer);
          receive.await();
          assertThat(in.toFloatArray()).containsExactly(peer);
          return null;
        });
  }

  /** The timing of a rank, and whether its call is asynchronous, must not show in the numbers. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void ranksCountAlikeAfterwards(boolean isAsync) throws Exception {
    CallOptions direct = CallOptions.DEFAULT.withAlgorithm("direct");
    CompletableFuture<ProcessGroup> busy = new CompletableFuture<>();
    List<Throwable> failures =
        GlooWorld.run(
            2,
            GlooWorld.settings(),
            group -> {
              if (group.rank() == 0) {
                until(() -> busy.join().sequenceNumber() == 2);
              }
              Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
              if (group.rank() == 0) {
                first.await();
              } else {
                busy.complete(group);
              }
              boolean isLater = isAsync && group.rank() == 1;
              CallOptions options = isLater ? direct.withAsync() : direct;
              assertThatThrownBy(
                      () -> group.allReduce(Tensor.wrap(new int[1]), ReduceOp.SUM, options).await())
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("algorithm direct needs tensors");
              first.await();
              group.allReduce(Tensor.of(1, 2, 3));
              assertThat(group.sequenceNumber()).isEqualTo(3);
              Tensor wrong = group.rank() == 0 ? Tensor.of(1) : Tensor.of(1f);
              return catchThrowable(() -> group.allReduce(wrong));
            });
    assertThat(failures).allSatisfy(failure -> assertMismatch(failure, 4));
  }

  /** Whether all report what each called depends on whether their answers come in time. */
  private static void assertMismatch(Throwable failure, long sequence) {
    assertThat(failure)
        .isInstanceOfSatisfying(
            MismatchException.class, e -> assertThat(e.sequenceNumber()).isEqualTo(sequence));
  }

  /** One rank alone makes calls that are refused, while the group is busy and others follow. */
  @ParameterizedTest
  @ValueSource(strings = {"shared memory", "sockets"})
  void ranksCountAlikeAfterOneAloneMadeARefusedCall(String transport) throws Exception {
    CompletableFuture<Boolean> queued = new CompletableFuture<>();
    String shared = transport.equals("sockets") ? "0" : "16m";
    List<Throwable> failures =
        GlooWorld.run(
            2,
            GlooWorld.settings("TUTTI_GLOO_SHARED_BYTES", shared),
            group -> {
              if (group.rank() == 0) {
                assertThat(queued.get(100, TimeUnit.SECONDS)).isTrue();
              }
              Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
              if (group.rank() == 1) {
                assertThatThrownBy(() -> group.broadcast(Tensor.of(1f), 2, CallOptions.ASYNC))
                    .isInstanceOf(IllegalArgumentException.class);
                Tensor indices = Tensor.wrap(new long[5]).view(5, 1);
                Tensor sparse = Tensor.sparse(indices, Tensor.of(1f), 1, 1, 1, 1, 1);
                group.allReduce(sparse, ReduceOp.SUM, CallOptions.ASYNC);
              }
              Work second = group.allReduce(Tensor.of(1f, 2f), ReduceOp.SUM, CallOptions.ASYNC);
              queued.complete(true);
              first.await();
              second.await();
              assertThat(second.sequenceNumber()).isEqualTo(2);
              assertThat(group.sequenceNumber()).isEqualTo(2);
              Tensor wrong = group.rank() == 0 ? Tensor.of(1) : Tensor.of(1f);
              return catchThrowable(() -> group.allReduce(wrong));
            });
    assertThat(failures).hasSize(2).allSatisfy(failure -> assertMismatch(failure, 3));
  }

  /** Two threads of each rank divide the group, and come in different orders. */
  @Test
  void splitAndSplitByHostInAnotherOrderFail() throws Exception {
    HashStore store = new HashStore();
    List<List<Throwable>> failures =
        GlooWorld.inParallel(
            2,
            GlooWorld.TIMEOUT,
            rank -> {
              try (ProcessGroup group =
                  ProcessGroup.init(GlooWorld.options(store, rank, 2, GlooWorld.settings()))) {
                CompletableFuture<Throwable> split = new CompletableFuture<>();
                Thread splitting =
                    Thread.ofPlatform()
                        .unstarted(() -> split.complete(catchThrowable(() -> group.split(0, 0))));
                if (rank == 1) {
                  splitting.start();
                }
                until(() -> store.listKeys().stream().anyMatch(key -> key.endsWith("split/1/1")));
                Throwable byHost = catchThrowable(group::splitByHost);
                if (rank == 0) {
                  splitting.start();
                }
                return List.of(byHost, split.get(100, TimeUnit.SECONDS));
              }
            });
    assertThat(failures)
        .allSatisfy(
            both ->
                assertThat(both)
                    .allSatisfy(
                        failure ->
                            assertThat(failure)
                                .isInstanceOf(CollectiveException.class)
                                .hasMessageContaining("rank 1 called split, but rank 0 called")
                                .hasMessageContaining("splitByHost")));
  }

  private static void until(BooleanSupplier condition) {
    long limit = System.nanoTime() + GlooWorld.TIMEOUT.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - limit).isNegative();
      LockSupport.parkNanos(100_000);
    }
  }
}
