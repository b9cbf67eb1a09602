package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Tests of concurrent calls from several threads of a rank. */
public interface ConcurrencyContract extends GroupContract {
  /** Runs collectives of several groups of the same ranks at once, one thread for each group. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void severalGroupsWorkAtOnce(ContractWorld world) throws Exception {
    int threads = 4;
    int rounds = world.isLarge() ? 10 : 100;
    world.run(
        member -> {
          List<Calls.Action> calls = new ArrayList<>();
          for (int t = 0; t < threads; t++) {
            ProcessGroup group = member.twin();
            int base = 10 * t;
            calls.add(
                () -> {
                  for (int round = 0; round < rounds; round++) {
                    TestTensor tensor = member.floats(base + round % 7, 1);
                    group.allReduce(tensor.view());
                    double n = member.size();
                    tensor.assertValues("sum in group " + group.name(), n * (base + round % 7), n);
                  }
                });
          }
          Calls.runAll(calls);
        });
  }

  /** Issues collectives of one group from several threads in turn. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void severalThreadsShareAGroupInTurn(ContractWorld world) throws Exception {
    int threads = 3;
    int rounds = world.isLarge() ? 10 : 60;
    world.run(
        member -> {
          List<Semaphore> turns = new ArrayList<>();
          for (int t = 0; t < threads; t++) {
            turns.add(new Semaphore(t == 0 ? 1 : 0));
          }
          List<Calls.Action> calls = new ArrayList<>();
          for (int t = 0; t < threads; t++) {
            int self = t;
            calls.add(
                () -> {
                  List<Work> works = new ArrayList<>();
                  List<TestTensor> tensors = new ArrayList<>();
                  for (int round = 0; round < rounds; round++) {
                    assertThat(turns.get(self).tryAcquire(100, TimeUnit.SECONDS)).isTrue();
                    TestTensor tensor = member.floats(100 * self + round);
                    CallOptions options = round % 2 == 0 ? CallOptions.ASYNC : CallOptions.DEFAULT;
                    works.add(member.group().allReduce(tensor.view(), ReduceOp.SUM, options));
                    tensors.add(tensor);
                    turns.get((self + 1) % threads).release();
                  }
                  works.forEach(Work::await);
                  for (int round = 0; round < rounds; round++) {
                    tensors
                        .get(round)
                        .assertValues(
                            "sum of thread " + self, member.size() * (100.0 * self + round));
                  }
                });
          }
          Calls.runAll(calls);
          assertThat(member.group().sequenceNumber()).isEqualTo((long) threads * rounds);
        });
  }

  /** Sends and receives from several threads, one tag each, while collectives run. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV, OpType.ALL_REDUCE},
      movesData = true,
      features = Feature.TAGS,
      minSize = 2)
  default void threadsSendWhileCollectivesRun(ContractWorld world) throws Exception {
    int rounds = world.isLarge() ? 5 : 50;
    world.run(
        member -> {
          List<Calls.Action> calls = new ArrayList<>();
          for (int t = 0; t < 3; t++) {
            int tag = t;
            calls.add(
                () -> {
                  for (int round = 0; round < rounds; round++) {
                    double[] values =
                        TestData.constant(DType.INT32, 1000 * member.rank() + round, 300);
                    Work send = member.sendToNext(member.tensor(DType.INT32, values, 300), tag);
                    TestTensor received = member.blank(Layout.CONTIGUOUS, DType.INT32, 300);
                    member
                        .group()
                        .recv(received.view(), member.previous(), tag, CallOptions.DEFAULT);
                    send.await();
                    received.assertValues(
                        "message",
                        TestData.constant(DType.INT32, 1000 * member.previous() + round, 300));
                  }
                });
          }
          calls.add(
              () -> {
                for (int round = 0; round < rounds; round++) {
                  member.assertUsable();
                }
              });
          Calls.runAll(calls);
        });
  }

  /**
   * Keeps messages of one pair and tag in two groups apart, in whatever order they are received.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      features = Feature.TAGS,
      minSize = 2)
  default void messagesOfTwoGroupsStayApart(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup first = member.twin();
          ProcessGroup second = member.twin();
          TestTensor one = member.floats(100 + member.rank());
          TestTensor two = member.floats(200 + member.rank());
          TestTensor ofFirst = member.floats(0);
          TestTensor ofSecond = member.floats(0);
          List<Work> works =
              List.of(
                  first.send(one.view(), member.next(), 7, CallOptions.ASYNC),
                  second.send(two.view(), member.next(), 7, CallOptions.ASYNC),
                  second.recv(ofSecond.view(), member.previous(), 7, CallOptions.ASYNC),
                  first.recv(ofFirst.view(), member.previous(), 7, CallOptions.ASYNC));
          works.forEach(Work::await);
          ofFirst.assertValues("message in the first group", 100 + member.previous());
          ofSecond.assertValues("message in the second group", 200 + member.previous());
        });
  }
}
