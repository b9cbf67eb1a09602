package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Tests of sends and receives: types, sizes, layouts, tags, order, any source, and many at once.
 */
public interface PointToPointContract extends GroupContract {
  /** Sends every type around the ring of ranks. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      minSize = 2)
  default void sendMovesEveryType(ContractWorld world) throws Exception {
    world.run(member -> Moves.everyType(member, PointToPointContract::checkRing));
  }

  /**
   * Sends tensors of every size, including sizes larger than socket buffers, and of every layout.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      minSize = 2)
  default void sendTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.anySizeAndLayout(member, PointToPointContract::checkRing);
          long large = world.isLarge() ? 100_000 : 1_000_003;
          checkRing(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32, large);
          checkRing(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
        });
  }

  /** Receives in a different order than was sent, by tag. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      features = Feature.TAGS,
      minSize = 2)
  default void tagsTellMessagesApart(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int[] sent = {5, 0, 9, Integer.MAX_VALUE};
          int[] received = {Integer.MAX_VALUE, 9, 0, 5};
          List<Work> sends = new ArrayList<>();
          for (int tag : sent) {
            TestTensor tensor = member.floats(member.rank(), tag % 1000);
            sends.add(member.sendToNext(tensor, tag));
          }
          for (int tag : received) {
            TestTensor tensor = member.floats(-1, -1);
            Work work =
                member.group().recv(tensor.view(), member.previous(), tag, CallOptions.DEFAULT);
            assertThat(work.isCompleted()).as("a synchronous receive is done").isTrue();
            tensor.assertValues("message with tag " + tag, member.previous(), tag % 1000);
          }
          sends.forEach(Work::await);
        });
  }

  /**
   * Keeps the order of messages of one pair and tag, whether the receives are posted early or late.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2)
  default void messagesOfOneTagStayInOrder(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int count = 40;
          for (boolean receiveFirst : new boolean[] {true, false}) {
            List<Work> works = new ArrayList<>();
            List<TestTensor> received = new ArrayList<>();
            for (int pass = 0; pass < 2; pass++) {
              for (int i = 0; i < count; i++) {
                if ((pass == 0) == receiveFirst) {
                  received.add(member.floats(-1));
                  works.add(member.recvFromPrevious(received.get(i), 0));
                } else {
                  works.add(member.sendToNext(member.floats(1000.0 * member.rank() + i), 0));
                }
              }
              member.meet();
            }
            works.forEach(Work::await);
            for (int i = 0; i < count; i++) {
              received.get(i).assertValues("message " + i, 1000.0 * member.previous() + i);
            }
          }
        });
  }

  /** Sends large amounts in both directions between all pairs at once, without a deadlock. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2)
  default void manyMessagesFlyBothWays(ContractWorld world) throws Exception {
    int rounds = world.isLarge() ? 2 : 32;
    int numel = world.isLarge() ? 500 : 16_384;
    world.run(
        member -> {
          List<Work> works = new ArrayList<>();
          List<TestTensor> received = new ArrayList<>();
          List<Integer> peers =
              member.ranks().stream().filter(rank -> rank != member.rank()).toList();
          for (int round = 0; round < rounds; round++) {
            double[] values = TestData.constant(DType.INT32, 100.0 * member.rank() + round, numel);
            for (int peer : peers) {
              Tensor tensor = member.tensor(DType.INT32, values, numel).view();
              works.add(member.group().send(tensor, peer, 0, CallOptions.ASYNC));
            }
          }
          for (int round = 0; round < rounds; round++) {
            for (int peer : peers) {
              TestTensor tensor = member.blank(Layout.CONTIGUOUS, DType.INT32, numel);
              received.add(tensor);
              works.add(member.group().recv(tensor.view(), peer, 0, CallOptions.ASYNC));
            }
          }
          works.forEach(Work::await);
          int i = 0;
          for (int round = 0; round < rounds; round++) {
            for (int peer : peers) {
              double[] sent = TestData.constant(DType.INT32, 100.0 * peer + round, numel);
              received.get(i++).assertValues("message " + round + " from " + peer, sent);
            }
          }
        });
  }

  /** Receives from whichever rank sends, and returns which one it was. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV_ANY_SOURCE},
      movesData = true,
      features = Feature.TAGS,
      minSize = 2)
  default void recvAnySourceTakesEachSenderOnce(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int target = member.size() - 1;
          for (int tag : new int[] {0, 3}) {
            if (member.rank() != target) {
              Tensor tensor = member.floats(member.rank(), tag).view();
              member.group().send(tensor, target, tag, CallOptions.DEFAULT).await();
              continue;
            }
            TreeSet<Integer> sources = new TreeSet<>();
            for (int i = 0; i < target; i++) {
              TestTensor tensor = member.floats(-1, -1);
              Work work = member.group().recvAnySource(tensor.view(), tag, CallOptions.DEFAULT);
              work.await();
              sources.add(work.sourceRank());
              tensor.assertValues("message of any source", work.sourceRank(), tag);
            }
            assertThat(sources).hasSize(target).allMatch(rank -> rank < target);
          }
        });
  }

  /** Completes messages, including those larger than socket buffers, even if no one waits. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2)
  default void messagesCompleteByThemselves(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int numel = world.isLarge() ? 9_001 : 1_000_003;
          double[] mine = TestData.constant(DType.INT32, member.rank(), numel);
          TestTensor polled = member.blank(Layout.CONTIGUOUS, DType.INT32, numel);
          Work send = member.sendToNext(member.tensor(DType.INT32, mine, numel), 0);
          Work recv = member.recvFromPrevious(polled, 0);
          Waiting.until("the end of the receive", recv::isCompleted);
          Waiting.until("the end of the send", send::isCompleted);
          polled.assertValues(
              "message that was polled", TestData.constant(DType.INT32, member.previous(), numel));
          TestTensor promised = member.floats(-1);
          CompletableFuture<List<Tensor>> sent =
              member.sendToNext(member.floats(member.rank()), 0).toCompletableFuture();
          member.recvFromPrevious(promised, 0).toCompletableFuture().get(1, TimeUnit.MINUTES);
          sent.get(1, TimeUnit.MINUTES);
          promised.assertValues("message of a future", member.previous());
        });
  }

  /** Has the source of a plain receive too, but not that of a send. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      minSize = 2)
  default void sourceRankIsKnownOfReceivesOnly(ContractWorld world) throws Exception {
    world.run(
        member -> {
          // Rank 0 sends first, the others receive first, as messages may run in order.
          Work early = member.rank() == 0 ? member.sendToNext(member.floats(1), 0) : null;
          Work recv = member.recvFromPrevious(member.floats(0), 0);
          Work send = early == null ? member.sendToNext(member.floats(1), 0) : early;
          recv.await();
          send.await();
          assertThat(recv.sourceRank()).isEqualTo(member.previous());
          assertThatThrownBy(send::sourceRank).isInstanceOf(IllegalStateException.class);
          assertThat(recv.opType()).isEqualTo(OpType.RECV);
          assertThat(send.opType()).isEqualTo(OpType.SEND);
        });
  }

  /** Runs messages, each with its own tag, across collectives of the same ranks. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV, OpType.ALL_REDUCE},
      movesData = true,
      features = Feature.TAGS,
      minSize = 2)
  default void messagesAndCollectivesDoNotMix(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int tag = 0; tag < 8; tag++) {
            TestTensor received = member.floats(-1);
            Work recv = member.recvFromPrevious(received, tag);
            member.assertUsable();
            Work send = member.sendToNext(member.floats(member.rank()), tag);
            member.assertUsable();
            send.await();
            recv.await();
            received.assertValues("message around collectives", member.previous());
          }
        });
  }

  /** Sends before the peer receives: the message waits for the receive. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2)
  default void anEarlyMessageWaitsForItsReceive(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Work send = member.sendToNext(member.floats(member.rank()), 0);
          if (!member.capabilities().has(Feature.STREAM_ORDERED)) {
            assertThat(send.await(Duration.ofMillis(20))).as("a send before its receive").isFalse();
          }
          member.meet();
          TestTensor received = member.floats(-1);
          member.group().recv(received.view(), member.previous());
          received.assertValues("early message", member.previous());
          send.await();
        });
  }

  /**
   * Fails a receive whose tensor differs in size from what was sent, instead of filling it in part.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2,
      maxSize = 3)
  default void aReceiveOfAnotherSizeFails(ContractWorld world) throws Exception {
    for (int sent : new int[] {4, 40_000}) {
      for (int wanted : new int[] {sent - 1, sent + 1}) {
        var _ = CaughtFailures.ofReceive(world, sent, DType.FLOAT32, wanted);
      }
    }
  }

  /** Ends a wait at its own deadline, and lets the receive continue. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      features = Feature.TAGS,
      movesData = true,
      minSize = 2)
  default void aWaitThatEndsEarlyLeavesTheReceive(ContractWorld world) throws Exception {
    world.run(
        member -> {
          TestTensor received = member.floats(-1);
          Work recv = member.recvFromPrevious(received, 0);
          assertThat(recv.await(Duration.ofMillis(20))).isFalse();
          assertThat(recv.isCompleted()).isFalse();
          member.meet();
          member.group().send(member.floats(member.rank()).view(), member.next());
          assertThat(recv.await(Waiting.LONG)).isTrue();
          received.assertValues("late message", member.previous());
        });
  }

  private static void checkRing(Member member, Layout in, Layout out, DType dtype, long... shape) {
    long numel = TestData.numel(shape);
    TestTensor source = member.toMove(in, dtype, numel, shape);
    TestTensor target = member.blank(out, dtype, shape);
    member.exchange(source, target);
    String what = "message of " + dtype.label();
    target.assertMoved(what, member.previous(), numel);
    source.assertMoved(what + ", source", member.rank(), numel);
  }
}
