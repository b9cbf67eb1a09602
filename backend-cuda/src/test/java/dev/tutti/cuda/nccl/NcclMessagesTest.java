package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.NcclBackendProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what happens to messages on a fake NCCL that cannot end, and what groups leave behind. */
@Isolated("counts the threads of the process")
class NcclMessagesTest {
  private static final int CYCLES = 20;

  /** A number of elements that NCCL sends only to a rank that receives. */
  private static final int LARGE = 100_000;

  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() {
    machine = new FakeMachine(3);
    nccl = new FakeNccl(machine.fake);
  }

  @AfterEach
  void nothingIsLeft() {
    machine.close();
    assertThat(nccl.communicators()).isZero();
  }

  /** Waits for the ends that a close begins, and for which it waits a second at most. */
  private void awaitEnds() {
    Until.holds("the end of all communicators", () -> nccl.communicators() == 0);
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .on(new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl));
  }

  private static Tensor floats(CudaDevice device, float... values) {
    return device.tensors().copyOf(Tensor.of(values));
  }

  @Test
  void messagesAndCollectivesRunInTheOrderOfTheCalls() throws Exception {
    ranks()
        .run(
            3,
            (group, device) -> {
              Tensor sum = floats(device, group.rank() + 1f);
              Work message = null;
              if (group.rank() == 0) {
                message = group.send(sum, 1, 0, CallOptions.ASYNC);
              } else if (group.rank() == 1) {
                message = group.recv(sum, 0, 0, CallOptions.ASYNC);
              }
              group.allReduce(sum);
              if (message != null) {
                message.await();
              }
              assertThat(device.tensors().toHost(sum).toFloatArray()).containsExactly(5);
            });
    assertThat(nccl.calls("ncclCommInitRankConfig")).isEqualTo(3);
  }

  @Test
  void anExchangeOfLargeMessagesNeedsABatch() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              int peer = 1 - group.rank();
              float[] values = new float[LARGE];
              Arrays.fill(values, group.rank() + 1f);
              Tensor received = device.tensors().allocate(DType.FLOAT32, LARGE);
              group.batch().recv(received, peer, 0).send(floats(device, values), peer, 0).run();
              float[] expected = new float[LARGE];
              Arrays.fill(expected, peer + 1f);
              assertThat(device.tensors().toHost(received).toFloatArray()).isEqualTo(expected);
            });
  }

  @Test
  void tagsAndReceivesFromAnyRankAreRefused() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor one = floats(device, 1f);
              int peer = 1 - group.rank();
              assertThatThrownBy(() -> group.send(one, peer, 3, CallOptions.DEFAULT))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessage(
                      "send on rank %s: backend 'nccl' does not support the tag 3 in this group:"
                          + " NCCL has no tags; send with tag 0, as the messages between two ranks"
                          + " match in their order",
                      group.rank());
              assertThatThrownBy(() -> group.recvAnySource(one))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessage(
                      "recvAnySource on rank %s: backend 'nccl' does not support recvAnySource;"
                          + " name the sender, with recv",
                      group.rank());
              message(group, one);
            });
  }

  @Test
  void aReceiveIsInTheOrderOfItsStream() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              if (group.rank() == 0) {
                CountDownLatch latch = machine.hold(device.currentStream());
                Tensor sent = device.tensors().allocate(DType.FLOAT32, 1);
                Work send = group.send(sent, 1, 0, CallOptions.ASYNC);
                assertThat(send.await(Duration.ofMillis(50))).isFalse();
                latch.countDown();
                send.await();
              } else {
                group.recv(device.tensors().allocate(DType.FLOAT32, 1), 0);
              }
            });
  }

  private static void message(ProcessGroup group, Tensor tensor) {
    if (group.rank() == 0) {
      group.send(tensor, 1);
    } else {
      group.recv(tensor, 0);
    }
  }

  @Test
  void saysWhichMessageFailed() {
    assertThatThrownBy(
            () ->
                ranks()
                    .run(
                        2,
                        (group, device) -> {
                          nccl.failOn("ncclSend", 3);
                          message(group, floats(device, 1f));
                        }))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("rank 0/2: send to rank 1 failed: result 3 (3)");
  }

  @Test
  void noticesWhatNcclReportsWhileAMessageWaits() throws Exception {
    CountDownLatch seen = new CountDownLatch(2);
    CountDownLatch done = new CountDownLatch(2);
    CountDownLatch held = machine.hold(machine.cuda.device(0).defaultStream());
    ranks()
        .run(
            2,
            (group, device) -> {
              Work work;
              if (group.rank() == 0) {
                // The stream is past the held work, so NCCL has the message on both sides.
                device.currentStream().waitFor(device.defaultStream().record());
                work = group.send(floatsLater(device), 1, 0, CallOptions.ASYNC);
              } else {
                work = group.recv(floatsLater(device), 0, 0, CallOptions.ASYNC);
              }
              // Each rank received from both ranks when the group was created.
              Until.holds("the message at NCCL", () -> nccl.calls("ncclRecv") == 5);
              seen.countDown();
              assertThat(seen.await(60, TimeUnit.SECONDS)).isTrue();
              nccl.failAll(NcclResult.REMOTE_ERROR);
              assertThatThrownBy(work::await)
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("failed: result 6 (6); played failure");
              done.countDown();
              assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
              held.countDown();
            });
  }

  private static Tensor floatsLater(CudaDevice device) {
    return device.tensors().allocate(DType.FLOAT32, 4);
  }

  @Test
  void namesThePeerThatClosesWhileAMessageWaitsForIt() throws Exception {
    CountDownLatch met = new CountDownLatch(3);
    ranks()
        .run(
            3,
            (group, device) -> {
              group.barrier();
              met.countDown();
              if (group.rank() == 2) {
                // The barrier of a rank that is still in it would fail.
                assertThat(met.await(Until.LONG.toSeconds(), TimeUnit.SECONDS)).isTrue();
                return;
              }
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, LARGE);
              // A rank that calls after the other rank has detected the failure is rejected
              // immediately.
              Throwable thrown =
                  catchThrowable(
                      () ->
                          (group.rank() == 0
                                  ? group.send(tensor, 2, 0, CallOptions.ASYNC)
                                  : group.recv(tensor, 2, 0, CallOptions.ASYNC))
                              .await(Until.LONG));
              assertThat(thrown)
                  .isInstanceOf(PeerFailedException.class)
                  .hasMessageMatching("(?s).*rank 2 (closed|no longer listens).*");
            });
  }

  @Test
  void anErrorOfTheDriverInAMessageIsNamed() {
    assertThatThrownBy(
            () ->
                ranks()
                    .run(
                        2,
                        (group, device) -> {
                          Tensor tensor = floats(device, 1f);
                          if (group.rank() == 0) {
                            machine.fake.failOn("cuEventRecord", 1, 700);
                            group.send(tensor, 1);
                          } else {
                            group.recv(tensor, 0);
                          }
                        }))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("cuEventRecord")
        .hasStackTraceContaining("700");
  }

  @Test
  void anAbortEndsMessagesInEveryState() throws Exception {
    for (int i = 0; i < CYCLES; i++) {
      CountDownLatch sent = new CountDownLatch(3);
      ranks()
          .run(
              3,
              (group, device) -> {
                List<Work> works = new ArrayList<>();
                for (int peer = 0; peer < 3; peer++) {
                  if (peer != group.rank()) {
                    works.add(group.send(floatsLater(device), peer, 0, CallOptions.ASYNC));
                    works.add(group.recv(floatsLater(device), peer, 0, CallOptions.ASYNC));
                    works.add(
                        group.recv(
                            floatsLater(device), peer, 0, CallOptions.ASYNC)); // no rank sends
                  }
                }
                sent.countDown();
                assertThat(sent.await(60, TimeUnit.SECONDS)).isTrue();
                if (group.rank() == 1) {
                  group.abort("enough");
                }
                assertThatThrownBy(() -> works.get(2).await(Until.LONG))
                    .isInstanceOf(TuttiException.class);
                works.forEach(work -> Until.holds("its end", work::isCompleted));
              });
      awaitEnds();
    }
  }

  @Test
  void groupsLeaveNothing() throws Exception {
    for (int i = 0; i < CYCLES; i++) {
      ranks()
          .run(
              2,
              (group, device) -> {
                int peer = 1 - group.rank();
                Tensor received = floats(device, 0f, 0f);
                Work send = group.send(floats(device, group.rank(), 5), peer, 0, CallOptions.ASYNC);
                group.recv(received, peer);
                send.await();
                assertThat(device.tensors().toHost(received).toFloatArray())
                    .containsExactly(peer, 5);
              });
      awaitEnds();
    }
  }
}
