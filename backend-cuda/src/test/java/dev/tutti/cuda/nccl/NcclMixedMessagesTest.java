package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.nccl.MixedRanks.LIMIT;
import static dev.tutti.cuda.nccl.MixedRanks.end;
import static dev.tutti.cuda.nccl.MixedRanks.floats;
import static dev.tutti.cuda.nccl.MixedRanks.read;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.provider.CudaSession;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests messages between Tutti and PyTorch ranks on a fake NCCL. */
@Timeout(300)
class NcclMixedMessagesTest {
  /** Several times as long as a rank waits before it checks which ranks have closed. */
  private static final Duration SEVERAL_LOOKS = Duration.ofSeconds(1);

  @AutoClose private final MixedRanks ranks = new MixedRanks(3);

  /** Reads the id from its key, and makes NCCL calls in a single communicator. */
  @Test
  void collectivesAndMessagesAreInTheCommunicatorOfTheGroup() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            1,
            2,
            rank -> {
              Communicator main = rank.main();
              Tensor tensor = rank.floats(10, 20);
              rank.sum(main, tensor);
              assertThat(rank.read(tensor)).containsExactly(11, 22);
              rank.receive(main, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(5, 6);
              rank.send(main, 0, rank.floats(7, 8));
              rank.sum(main, tensor);
              assertThat(rank.read(tensor)).containsExactly(12, 14);
              main.close();
            });
    Future<?> own =
        ranks.own(
            0,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 1, 2);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(11, 22);
              Work send = group.send(floats(device, 5, 6), 1, 0, CallOptions.ASYNC);
              Work recv = group.recv(tensor, 1, 0, CallOptions.ASYNC);
              send.await();
              recv.await();
              assertThat(recv.sourceRank()).isOne();
              assertThat(read(device, tensor)).containsExactly(7, 8);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(12, 14);
            });
    end(own, foreign);
    assertThat(ranks.keys()).containsExactly("0");
    assertThat(ranks.nccl.calls("ncclCommInitRankConfig")).isEqualTo(2);
  }

  @Test
  void aBatchIsOneCall() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            rank -> {
              Communicator main = rank.main();
              Tensor received = rank.floats(0);
              Tensor sent = rank.floats(3);
              rank.run(
                  main,
                  (calls, handle) -> {
                    calls.send(sent.segment().address(), 4, 1, handle, 0);
                    return calls.receive(received.segment().address(), 4, 1, handle, 0);
                  });
              assertThat(rank.read(received)).containsExactly(4);
              main.close();
            });
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              Tensor received = floats(device, 0);
              Work work = group.batch().recv(received, 0, 0).send(floats(device, 4), 0, 0).start();
              work.await();
              assertThat(read(device, received)).containsExactly(3);
            });
    end(own, foreign);
    assertThat(ranks.nccl.calls("ncclGroupStart")).isEqualTo(2);
    assertThat(ranks.keys()).containsExactly("0");
  }

  @Test
  void whatNcclCannotIsRefusedAndTheGroupGoesOn() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            1,
            2,
            rank -> {
              Communicator main = rank.main();
              rank.sum(main, rank.floats(1));
              main.close();
            });
    Future<?> own =
        ranks.own(
            0,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 1);
              assertThatThrownBy(() -> group.send(tensor, 1, 3, CallOptions.DEFAULT))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining(
                      "does not support the tag 3 in this group: NCCL has no tags; send with tag"
                          + " 0");
              assertThatThrownBy(() -> group.recvAnySource(tensor))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining(
                      "does not support recvAnySource; name the sender, with recv");
              assertThatThrownBy(() -> group.split(0, 0))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("use subgroup(ranks), which matches their new_group");
              assertThatSparseIsRefused(group, device);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(2);
            });
    end(own, foreign);
  }

  private static void assertThatSparseIsRefused(ProcessGroup group, CudaDevice device) {
    Tensor indices = device.tensors().copyOf(Tensor.of(3L).view(1, 1));
    Tensor sparse = Tensor.sparse(indices, floats(device, 1), 5);
    assertThatThrownBy(() -> group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("ranks of PyTorch do not support it on NCCL");
  }

  @Test
  void aLazyRankRefusesSparseTensorsAndTheGroupGoesOn() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            1,
            2,
            rank -> {
              Communicator main = rank.main();
              rank.sum(main, rank.floats(1));
              main.close();
            });
    Future<?> own =
        ranks.lazy(
            0,
            2,
            (group, device) -> {
              assertThatSparseIsRefused(group, device);
              Tensor tensor = floats(device, 1);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(2);
            });
    end(own, foreign);
  }

  @Test
  void aRankThatLeftIsNamedByAMessageThatWasFollowedByOthers() throws Exception {
    CountDownLatch started = new CountDownLatch(1);
    CountDownLatch over = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(over, 0, 3);
    Future<?> leaver =
        ranks.own(1, 3, (group, device) -> assertThat(started.await(2, TimeUnit.MINUTES)).isTrue());
    Future<?> waiter =
        ranks.own(
            2,
            3,
            Duration.ofSeconds(50),
            (group, device) -> {
              Work work = group.recv(floats(device, 0), 1, 0, CallOptions.ASYNC);
              Work other = group.recv(floats(device, 0), 0, 0, CallOptions.ASYNC);
              started.countDown();
              assertThatThrownBy(() -> work.await(LIMIT))
                  .hasMessageContaining("rank 1 closed the group");
              assertThatThrownBy(() -> other.await(LIMIT)).isInstanceOf(TuttiException.class);
              over.countDown();
            });
    end(waiter, leaver, foreign);
  }

  @Test
  void whatARankSentBeforeItClosedArrives() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(over, 0, 3);
    Future<?> leaver =
        ranks.own(
            1,
            3,
            (group, device) -> {
              group.send(floats(device, 5), 2);
              group.send(floats(device, 6), 2);
            });
    Future<?> receiver =
        ranks.own(
            2,
            3,
            (group, device) -> {
              receiveAfterTheEnd(leaver, group, device, 1, 5);
              Tensor tensor = floats(device, 0);
              group.recv(tensor, 1);
              assertThat(read(device, tensor)).containsExactly(6);
              assertThatThrownBy(() -> group.recv(tensor, 1))
                  .hasMessageContaining("rank 1 closed the group");
              over.countDown();
            });
    end(receiver, leaver, foreign);
  }

  @Test
  void whatALazyRankSentBeforeItClosedArrives() throws Exception {
    Future<?> leaver = ranks.lazy(0, 2, (group, device) -> group.send(floats(device, 5), 1));
    Future<?> receiver =
        ranks.lazy(
            1,
            2,
            (group, device) -> {
              receiveAfterTheEnd(leaver, group, device, 0, 5);
              assertThatThrownBy(() -> group.recv(floats(device, 0), 0))
                  .hasMessageContaining("rank 0 closed the group");
            });
    end(receiver, leaver);
  }

  /** Receives in a stream that reaches the receive after the sender has closed its group. */
  private void receiveAfterTheEnd(
      Future<?> sender, ProcessGroup group, CudaDevice device, int from, float expected)
      throws Exception {
    Tensor tensor = floats(device, 0);
    CountDownLatch held = ranks.hold(device.currentStream());
    Work work = group.recv(tensor, from, 0, CallOptions.ASYNC);
    end(sender);
    assertThat(work.await(SEVERAL_LOOKS)).isFalse();
    held.countDown();
    work.await();
    assertThat(read(device, tensor)).containsExactly(expected);
  }

  /** NCCL counts messages without elements, and PyTorch sends them. */
  @Test
  void emptyMessagesAreMessages() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            rank -> {
              Communicator main = rank.main();
              Tensor tensor = rank.floats(0);
              long address = tensor.segment().address();
              rank.run(main, (calls, handle) -> calls.send(address, 0, 1, handle, 0));
              rank.send(main, 1, rank.floats(5));
              rank.run(main, (calls, handle) -> calls.receive(address, 0, 1, handle, 0));
              rank.receive(main, 1, tensor);
              assertThat(rank.read(tensor)).containsExactly(6);
              main.close();
            });
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              group.recv(floats(device), 0);
              Tensor tensor = floats(device, 0);
              group.recv(tensor, 0);
              assertThat(read(device, tensor)).containsExactly(5);
              group.send(floats(device), 0);
              group.send(floats(device, 6), 0);
            });
    end(own, foreign);
  }

  /** Exchanges parts without elements, as PyTorch's all_to_all_single does. */
  @Test
  void emptyPartsAreMessages() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            rank -> {
              Communicator main = rank.main();
              Tensor tensor = rank.floats(0);
              long address = tensor.segment().address();
              rank.run(
                  main,
                  (calls, handle) -> {
                    calls.send(address, 0, 1, handle, 0);
                    return calls.receive(address, 4, 1, handle, 0);
                  });
              assertThat(rank.read(tensor)).containsExactly(1);
              rank.send(main, 1, rank.floats(5));
              main.close();
            });
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              Tensor output = floats(device, 0);
              group.allToAllSingle(
                  output,
                  floats(device, 1, 2),
                  new long[] {0, 1},
                  new long[] {1, 1},
                  CallOptions.DEFAULT);
              assertThat(read(device, output)).containsExactly(2);
              group.recv(output, 0);
              assertThat(read(device, output)).containsExactly(5);
            });
    end(own, foreign);
  }

  @Test
  void aRecordedMessageIsReplayed() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            1,
            2,
            rank -> {
              Communicator main = rank.main();
              Tensor tensor = rank.floats(0);
              rank.receive(main, 0, tensor);
              rank.receive(main, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(9);
              main.close();
            });
    Future<?> own =
        ranks.own(
            0,
            2,
            (group, device) -> {
              try (CudaSession session = new CudaSession(device)) {
                Tensor tensor = floats(device, 9);
                var recording = session.record(() -> group.send(tensor, 1));
                recording.replay();
                recording.replay();
                device.currentStream().await(LIMIT);
                recording.close();
              }
            });
    end(own, foreign);
  }

  @Test
  void lazyMessagesHaveACommunicatorForEachTwoRanks() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            1,
            3,
            rank -> {
              Communicator below = rank.pair(0);
              Tensor tensor = rank.floats(0);
              rank.receive(below, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(5);
              rank.send(below, 0, rank.floats(6));
              Communicator above = rank.pair(2);
              rank.send(above, 1, rank.floats(7));
              Communicator main = rank.main();
              rank.sum(main, tensor);
              assertThat(rank.read(tensor)).containsExactly(8);
              below.close();
              above.close();
              main.close();
            });
    Future<?> first =
        ranks.lazy(
            0,
            3,
            (group, device) -> {
              group.send(floats(device, 5), 1);
              Tensor tensor = floats(device, 0);
              group.recv(tensor, 1);
              assertThat(read(device, tensor)).containsExactly(6);
              Tensor sum = floats(device, 1);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(8);
            });
    Future<?> last =
        ranks.lazy(
            2,
            3,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              Work work = group.recv(tensor, 1, 0, CallOptions.ASYNC);
              work.await();
              assertThat(work.sourceRank()).isOne();
              assertThat(read(device, tensor)).containsExactly(7);
              Tensor sum = floats(device, 2);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(8);
            });
    end(first, last, foreign);
    assertThat(ranks.keys()).containsExactly("0", "0:1", "1:2");
  }

  @Test
  void aLazyBatchIsInTheCommunicatorOfTheGroup() throws Exception {
    Future<?> first =
        ranks.lazy(
            0,
            2,
            (group, device) -> {
              Tensor received = floats(device, 0);
              group.batch().send(floats(device, 1), 1, 0).recv(received, 1, 0).run();
              assertThat(read(device, received)).containsExactly(2);
            });
    Future<?> second =
        ranks.foreign(
            1,
            2,
            rank -> {
              Communicator main = rank.main();
              rank.send(main, 0, rank.floats(2));
              Tensor tensor = rank.floats(0);
              rank.receive(main, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(1);
              main.close();
            });
    end(first, second);
    assertThat(ranks.keys()).containsExactly("0");
  }

  @Test
  void anAbortEndsLazyMessagesThatWaitForTheirRanks() throws Exception {
    end(
        ranks.lazy(
            1,
            3,
            (group, device) -> {
              Work above = group.send(floats(device, 0), 2, 0, CallOptions.ASYNC);
              Work below = group.recv(floats(device, 0), 0, 0, CallOptions.ASYNC);
              Until.holds("NCCL", () -> ranks.nccl.calls("ncclCommInitRankConfig") == 1);
              group.abort("enough");
              for (Work work : List.of(above, below)) {
                assertThatThrownBy(() -> work.await(LIMIT)).isInstanceOf(TuttiException.class);
              }
            }));
  }
}
