package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests messages over sockets. */
@Timeout(300)
class PointToPointTest {
  static final CallOptions ASYNC = CallOptions.ASYNC;

  /** Returns how many bytes the ranks share. */
  String sharedBytes() {
    return "0";
  }

  final <T> List<T> run(int size, GlooWorld.Body<T> body) throws Exception {
    return GlooWorld.run(
        size, GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), sharedBytes()), body);
  }

  static Tensor filled(long count, double value) {
    return Tensor.allocate(DType.FLOAT32, count).fill(value);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 4096, 5_000, 3_000_000})
  void sendsBothWaysAtOnce(long count) throws Exception {
    run(
        2,
        group -> {
          int peer = 1 - group.rank();
          Tensor in = filled(count, -1);
          Work send = group.send(filled(count, group.rank() + 1), peer, 0, ASYNC);
          Work receive = group.recv(in, peer, 0, ASYNC);
          send.await();
          receive.await();
          assertThat(receive.sourceRank()).isEqualTo(peer);
          assertThat(in.segment().mismatch(filled(count, peer + 1).segment())).isEqualTo(-1);
          return null;
        });
  }

  @Test
  void matchesByTagAndInOrder() throws Exception {
    run(
        2,
        group -> {
          if (group.rank() == 0) {
            for (int i = 0; i < 10; i++) {
              group.send(filled(3, i), 1, i % 2, ASYNC);
            }
            group.barrier();
            return null;
          }
          List<Work> works = new ArrayList<>();
          List<Tensor> tensors = new ArrayList<>();
          for (int i = 0; i < 10; i++) {
            Tensor in = filled(3, -1);
            tensors.add(in);
            works.add(group.recv(in, 0, i < 5 ? 1 : 0, ASYNC));
          }
          works.forEach(Work::await);
          for (int i = 0; i < 5; i++) {
            assertThat(tensors.get(i).toFloatArray()).containsOnly(2 * i + 1);
            assertThat(tensors.get(5 + i).toFloatArray()).containsOnly(2 * i);
          }
          group.barrier();
          return null;
        });
  }

  @Test
  void receivesFromWhoeverSends() throws Exception {
    run(
        4,
        group -> {
          if (group.rank() != 0) {
            group.send(filled(2, group.rank()), 0, 9, CallOptions.DEFAULT);
            group.barrier();
            return null;
          }
          List<Integer> sources = new ArrayList<>();
          for (int i = 0; i < 3; i++) {
            Tensor in = filled(2, -1);
            Work work = group.recvAnySource(in, 9, ASYNC);
            work.await();
            assertThat(in.toFloatArray()).containsOnly(work.sourceRank());
            sources.add(work.sourceRank());
          }
          assertThat(sources).containsExactlyInAnyOrder(1, 2, 3);
          group.barrier();
          return null;
        });
  }

  @Test
  void carriesManyTagsAtOnce() throws Exception {
    int tags = 500;
    run(
        2,
        group -> {
          int peer = 1 - group.rank();
          List<Work> works = new ArrayList<>();
          List<Tensor> received = new ArrayList<>();
          for (int i = 0; i < tags; i++) {
            works.add(group.send(filled(1 + i * 7, i), peer, i, ASYNC));
          }
          for (int i = tags - 1; i >= 0; i--) {
            Tensor in = filled(1 + i * 7, -1);
            received.add(in);
            works.add(group.recv(in, peer, i, ASYNC));
          }
          works.forEach(Work::await);
          for (int i = 0; i < tags; i++) {
            assertThat(received.get(tags - 1 - i).toFloatArray()).containsOnly(i);
          }
          return null;
        });
  }

  @Test
  void largeMessagesCrossOverAndOver() throws Exception {
    run(
        3,
        group -> {
          for (int round = 0; round < 5; round++) {
            List<Work> works = new ArrayList<>();
            List<Tensor> received = new ArrayList<>();
            List<Integer> sources = new ArrayList<>();
            for (int i = 1; i < 3; i++) {
              int peer = (group.rank() + i) % 3;
              works.add(group.send(filled(700_001, group.rank() * 10 + round), peer, 0, ASYNC));
              Tensor in = filled(700_001, -1);
              received.add(in);
              sources.add(peer);
              works.add(group.recv(in, peer, 0, ASYNC));
            }
            works.forEach(Work::await);
            for (int i = 0; i < 2; i++) {
              Tensor expected = filled(700_001, sources.get(i) * 10 + round);
              assertThat(received.get(i).segment().mismatch(expected.segment())).isEqualTo(-1);
            }
          }
          return null;
        });
  }

  @Test
  void synchronousMessagesGoToAndFro() throws Exception {
    run(
        2,
        group -> {
          int peer = 1 - group.rank();
          for (int i = 0; i < 2000; i++) {
            long count = i % 100 == 0 ? 100_000 : 1 + i % 50;
            Tensor in = filled(count, -1);
            if (group.rank() == 0) {
              group.send(filled(count, i), peer);
              group.recv(in, peer);
            } else {
              group.recv(in, peer);
              group.send(filled(count, i), peer);
            }
            if (in.getDouble(0) != i || in.getDouble(count - 1) != i) {
              assertThat(in.toFloatArray()).containsOnly(i);
            }
          }
          return null;
        });
  }

  @Test
  void futuresCompleteThoughNobodyWaits() throws Exception {
    run(
        2,
        group -> {
          int peer = 1 - group.rank();
          Tensor in = filled(100_000, -1);
          Work receive = group.recv(in, peer, 0, ASYNC);
          group.send(filled(100_000, peer), peer, 0, ASYNC);
          receive.toCompletableFuture().get(60, TimeUnit.SECONDS);
          assertThat(in.toFloatArray()).containsOnly(group.rank());
          group.barrier();
          return null;
        });
  }

  @Test
  void runsBesideCollectives() throws Exception {
    run(
        3,
        group -> {
          List<Work> works = new ArrayList<>();
          List<Tensor> received = new ArrayList<>();
          for (int i = 0; i < 20; i++) {
            for (int peer = 0; peer < 3; peer++) {
              if (peer != group.rank()) {
                Tensor in = filled(1000 + i, -1);
                received.add(in);
                works.add(group.recv(in, peer, i, ASYNC));
                works.add(group.send(filled(1000 + i, i), peer, i, ASYNC));
              }
            }
            Tensor sum = filled(50_000, 1);
            Work reduced = group.allReduce(sum, ReduceOp.SUM, CallOptions.ASYNC);
            group.barrier();
            reduced.await();
            assertThat(sum.getDouble(49_999)).isEqualTo(3);
          }
          works.forEach(Work::await);
          for (int i = 0; i < received.size(); i++) {
            assertThat(received.get(i).toFloatArray()).containsOnly(Math.floorDiv(i, 2));
          }
          return null;
        });
  }

  @Test
  void refusesAMessageThatIsTooLong() throws Exception {
    run(
        2,
        group -> {
          if (group.rank() == 0) {
            Tensor small = filled(2, 0);
            assertThatThrownBy(() -> group.recv(small, 1))
                .hasMessageContaining("12 bytes")
                .hasMessageContaining("8 bytes");
          } else {
            assertThatThrownBy(
                    () -> {
                      group.send(filled(3, 1), 0);
                      // The send may have ended before rank 0 rejects it.
                      group.barrier();
                    })
                .hasMessageContaining("first failing rank");
          }
          return null;
        });
  }

  /** In either order of arrival, the sender has what the receiver expects before it sends. */
  @ParameterizedTest
  @CsvSource({
    "true, 2, int32, int32[2] of 8 bytes",
    "false, 2, int32, int32[2] of 8 bytes",
    "true, 3, float32, float32[3] of 12 bytes",
    "false, 3, float32, float32[3] of 12 bytes"
  })
  void bothEndsNameAMessageThatDoesNotFit(
      boolean receiverFirst, long count, String type, String received) throws Exception {
    assertThat(misfit(receiverFirst, count, type))
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageContaining(
                        "rank 0 sends float32[2] of 8 bytes to rank 1, which receives " + received)
                    .message()
                    .doesNotContain("gone", "closed", "slot"));
  }

  /** Returns what the sender and the receiver throw. */
  private List<Throwable> misfit(boolean receiverFirst, long count, String type) throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    return run(
        2,
        group -> {
          boolean sends = group.rank() == 0;
          if (sends == receiverFirst) {
            assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
          }
          Tensor in = Tensor.allocate(DType.ofLabel(type), count).fill(7);
          Work work =
              sends ? group.send(Tensor.of(1f, 2f), 1, 0, ASYNC) : group.recv(in, 0, 0, ASYNC);
          begun.countDown();
          Throwable failure = catchThrowable(work::await);
          assertThat(in.toDoubleArray()).containsOnly(7);
          return failure;
        });
  }
}
