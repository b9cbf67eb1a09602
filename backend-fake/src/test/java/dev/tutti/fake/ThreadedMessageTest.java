package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ThreadedMessageTest {
  private static TestOperation send(RawWorld.Rank rank, Tensor tensor, int peer, int tag) {
    TestOperation op = rank.op(OpType.SEND);
    rank.backend.send(op, tensor, peer, tag);
    return op;
  }

  private static TestOperation recv(RawWorld.Rank rank, Tensor tensor, int peer, int tag) {
    TestOperation op = rank.op(OpType.RECV);
    rank.backend.recv(op, tensor, peer, tag);
    return op;
  }

  private static TestOperation recvAny(RawWorld.Rank rank, Tensor tensor, int tag) {
    TestOperation op = rank.op(OpType.RECV_ANY_SOURCE);
    rank.backend.recvAnySource(op, tensor, tag);
    return op;
  }

  @Test
  void everyTypeIsSent() {
    RawWorld.run(
        2,
        rank -> {
          for (DType dtype : DType.values()) {
            for (long count : new long[] {0, 1, 1000}) {
              Tensor own = Samples.fill(Tensor.allocate(dtype, count), rank.rank);
              Tensor other = Tensor.allocate(dtype, count);
              int peer = 1 - rank.rank;
              TestOperation sent = send(rank, own, peer, 0);
              TestOperation received = recv(rank, other, peer, 0);
              received.result();
              sent.result();
              assertThat(received.source).isEqualTo(peer);
              Tensor expected = Samples.fill(Tensor.allocate(dtype, count), peer);
              assertThat(Samples.sameBits(other, expected)).isTrue();
            }
          }
        });
  }

  @Test
  void messagesOfOnePairAndTagKeepTheirOrder() {
    int count = 500;
    RawWorld.run(
        3,
        rank -> {
          List<TestOperation> ops = new ArrayList<>();
          List<Tensor> received = new ArrayList<>();
          for (int i = 0; i < count; i++) {
            for (int peer = 0; peer < 3; peer++) {
              if (peer != rank.rank) {
                ops.add(send(rank, Tensor.of(10_000 * rank.rank + i), peer, i % 2));
                Tensor tensor = Tensor.of(-1);
                received.add(tensor);
                ops.add(recv(rank, tensor, peer, i % 2));
              }
            }
          }
          for (TestOperation op : ops) {
            op.result();
          }
          int at = 0;
          for (int i = 0; i < count; i++) {
            for (int peer = 0; peer < 3; peer++) {
              if (peer != rank.rank) {
                assertThat(received.get(at++).getLong(0)).isEqualTo(10_000 * peer + i);
              }
            }
          }
        });
  }

  @Test
  void tagsAreKeptApart() {
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            TestOperation first = send(rank, Tensor.of(1), 1, 1);
            TestOperation second = send(rank, Tensor.of(2), 1, 2);
            second.result();
            first.result();
          } else {
            Tensor two = Tensor.of(0);
            Tensor one = Tensor.of(0);
            recv(rank, two, 0, 2).result();
            recv(rank, one, 0, 1).result();
            assertThat(two.getLong(0)).isEqualTo(2);
            assertThat(one.getLong(0)).isEqualTo(1);
          }
        });
  }

  @Test
  void aSendEndsNoSoonerThanItsReceive() {
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            TestOperation op = send(rank, Tensor.of(1), 1, 0);
            rank.backend.barrier(rank.op(OpType.BARRIER));
            assertThat(op.isDone()).isFalse();
            rank.backend.barrier(rank.op(OpType.BARRIER));
            op.result();
          } else {
            rank.backend.barrier(rank.op(OpType.BARRIER));
            rank.backend.barrier(rank.op(OpType.BARRIER));
            recv(rank, Tensor.of(0), 0, 0).result();
          }
        });
  }

  @Test
  void anySourceTakesEachSenderOnce() {
    int size = 5;
    RawWorld.run(
        size,
        rank -> {
          if (rank.rank != 0) {
            send(rank, Tensor.of(rank.rank * 11), 0, 3).result();
            return;
          }
          BitSet seen = new BitSet();
          for (int i = 1; i < size; i++) {
            Tensor tensor = Tensor.of(0);
            TestOperation op = recvAny(rank, tensor, 3);
            op.result();
            assertThat(tensor.getLong(0)).isEqualTo(op.source * 11L);
            seen.set(op.source);
          }
          assertThat(seen.cardinality()).isEqualTo(size - 1);
          assertThat(seen.get(0)).isFalse();
        });
  }

  @Test
  void sizesAndTypesMustBeEqual() {
    for (Tensor wrong : List.of(Tensor.of(1, 2, 3), Tensor.of(1f, 2f))) {
      List<Throwable> failures =
          RawWorld.failures(
              2,
              new ThreadedProvider(),
              rank -> {
                if (rank.rank == 0) {
                  send(rank, Tensor.of(1, 2), 1, 7).result();
                } else {
                  recv(rank, wrong, 0, 7).result();
                }
              });
      assertThat(failures)
          .allSatisfy(
              failure ->
                  assertThat(failure)
                      .isInstanceOf(PeerMismatchException.class)
                      .hasMessageContaining("rank 0 called send #1 int32[2] on cpu tag 7 to rank 1")
                      .hasMessageContaining("recv #1 " + wrong.describe() + " tag 7"));
    }
  }

  @Test
  void whatEndedMeanwhileIsNotMatched() {
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            rank.backend.barrier(rank.op(OpType.BARRIER));
            send(rank, Tensor.of(5), 1, 0).result();
            return;
          }
          Tensor given = Tensor.of(0);
          TestOperation gaveUp = recv(rank, given, 0, 0);
          gaveUp.fail(new IllegalStateException("deadline"), -1);
          rank.backend.barrier(rank.op(OpType.BARRIER));
          Tensor taken = Tensor.of(0);
          recv(rank, taken, 0, 0).result();
          assertThat(given.getLong(0)).isZero();
          assertThat(taken.getLong(0)).isEqualTo(5);
        });
  }

  @Test
  void aPeerThatClosedIsNamed() {
    RawWorld.run(
        3,
        rank -> {
          if (rank.rank == 2) {
            return;
          }
          TestOperation op = recv(rank, Tensor.of(0), 2, 0);
          assertThatThrownBy(op::result)
              .isInstanceOf(PeerLostException.class)
              .hasMessage("rank 2 closed group test");
          assertThat(op.failedRank).isEqualTo(2);
          assertThatThrownBy(() -> send(rank, Tensor.of(0), 2, 0).result())
              .isInstanceOf(PeerLostException.class);
        });
  }

  @Test
  void aReceiveFromAnySourceEndsWhenNobodyIsLeft() {
    CountDownLatch posted = new CountDownLatch(1);
    RawWorld.run(
        3,
        rank -> {
          if (rank.rank != 0) {
            assertThat(posted.await(60, TimeUnit.SECONDS)).isTrue();
            if (rank.rank == 1) {
              send(rank, Tensor.of(11), 0, 3).result();
            }
            return;
          }
          Tensor first = Tensor.of(0);
          TestOperation before = recvAny(rank, first, 3);
          TestOperation waiting = recvAny(rank, Tensor.of(0), 3);
          posted.countDown();
          before.result();
          assertThat(first.getLong(0)).isEqualTo(11);
          for (TestOperation op : List.of(waiting, recvAny(rank, Tensor.of(0), 3))) {
            assertThatThrownBy(op::result)
                .isInstanceOf(PeerLostException.class)
                .hasMessageMatching("rank [12] closed group test");
            assertThat(op.failedRank).isIn(1, 2);
          }
        });
  }

  /** Elements in a different order are slow to copy. */
  @Test
  void abortWaitsForWhatIsBeingCopied() {
    long columns = 2_000_000;
    CountDownLatch posted = new CountDownLatch(1);
    CountDownLatch sent = new CountDownLatch(1);
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            Tensor tensor = Tensor.allocate(DType.UINT8, columns, 2);
            tensor.fill(7);
            assertThat(posted.await(60, TimeUnit.SECONDS)).isTrue();
            send(rank, tensor.transpose(0, 1), 1, 0);
            sent.countDown();
            return;
          }
          Tensor tensor = Tensor.allocate(DType.UINT8, 2, columns);
          Tensor ones = Tensor.allocate(DType.UINT8, 2, columns);
          ones.fill(1);
          recv(rank, tensor, 0, 0);
          posted.countDown();
          while (tensor.getLong(0) == 0) {
            Thread.onSpinWait();
          }
          rank.backend.abort(new IllegalStateException("had enough"));
          tensor.copyFrom(ones);
          assertThat(sent.await(60, TimeUnit.SECONDS)).isTrue();
          assertThat(tensor.segment().mismatch(ones.segment()))
              .as("first byte that was written after the abort")
              .isEqualTo(-1);
        });
  }

  @Test
  void whatComesAfterAnAbortIsNotCopied() {
    CountDownLatch aborted = new CountDownLatch(1);
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            assertThat(aborted.await(60, TimeUnit.SECONDS)).isTrue();
            TestOperation op = send(rank, Tensor.of(5), 1, 0);
            assertThatThrownBy(op::result).isInstanceOf(PeerLostException.class);
            return;
          }
          Tensor tensor = Tensor.of(0);
          TestOperation op = recv(rank, tensor, 0, 0);
          rank.backend.abort(new IllegalStateException("had enough"));
          assertThatThrownBy(op::result).isInstanceOf(PeerLostException.class);
          aborted.countDown();
          assertThat(tensor.getLong(0)).isZero();
        });
  }
}
