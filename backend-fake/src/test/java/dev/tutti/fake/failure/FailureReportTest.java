package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.MismatchException;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests which rank a failure names, and that all ranks name the same one. */
@Isolated("threads of other tests in shared locks would bring in real time")
class FailureReportTest {
  private static final Duration SHORT = Duration.ofMillis(300);

  interface Role {
    void play(ProcessGroup group) throws Exception;
  }

  /**
   * When all ranks are notified of an operation with a short deadline: after the watchdog's next
   * look.
   */
  private static final Duration KNOWN = SHORT.plusMillis(50);

  /**
   * Runs one role per rank on a backend that never completes a message, and waits for the failure,
   * of which all ranks must be notified at the same time.
   */
  private static List<CollectiveException> play(
      Duration after, ScriptedProvider provider, Role... roles) throws Exception {
    return Simulation.groups(
        roles.length,
        Simulation.store(),
        provider,
        group -> {
          roles[group.rank()].play(group);
          CollectiveException failure = Simulation.failure(group);
          assertThat(Simulation.now()).as("%s", failure).isEqualTo(after);
          return failure;
        });
  }

  private static CallOptions async() {
    return CallOptions.timeout(Duration.ofSeconds(60)).withAsync();
  }

  private static CallOptions brief() {
    return CallOptions.timeout(SHORT);
  }

  private static void receiveInVain(ProcessGroup group, int peer, int tag) {
    CollectiveTimeoutException failure =
        catchThrowableOfType(
            CollectiveTimeoutException.class, () -> group.recv(Tensor.of(0f), peer, tag, brief()));
    assertThat(failure).isNotNull();
    assertThat(failure.info().peer()).hasValue(peer);
    assertThat(failure)
        .hasMessageContaining("recv #1 from rank " + peer + ", tag " + tag)
        .hasMessageContaining("peer rank " + peer);
  }

  @Simulated
  void aReceiveNamesAnIdlePeer() throws Exception {
    for (CollectiveException failure :
        play(
            KNOWN,
            ScriptedProvider.deaf(),
            group -> receiveInVain(group, 2, 7),
            group -> {},
            group -> {})) {
      assertThat(failure.failedRank()).hasValue(2);
      assertThat(failure).hasMessageContaining("rank 2 did not send in time");
    }
  }

  /** Messages are numbered on each rank, so the first one of rank 2 is not that of rank 0. */
  @Simulated
  void aTimeoutIsThatOfTheRankThatHadIt() throws Exception {
    CountDownLatch pending = new CountDownLatch(1);
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    play(
        KNOWN,
        ScriptedProvider.deaf(),
        group -> {
          pending.await();
          receiveInVain(group, 1, 7);
        },
        group -> {},
        group -> {
          Work own = group.recv(Tensor.of(0f), 1, 7, CallOptions.ASYNC);
          pending.countDown();
          thrown.set(catchThrowable(own::await));
        });
    assertThat(thrown.get())
        .isInstanceOf(PeerFailedException.class)
        .isNotInstanceOf(CollectiveTimeoutException.class);
  }

  /** The backend lets mismatched calls pass; the ranks find out when one is missing. */
  @Simulated
  void aTimeoutNamesTheFirstCallsThatDoNotFit() throws Exception {
    CountDownLatch others = new CountDownLatch(2);
    ScriptedProvider provider = new ScriptedProvider();
    provider.collective =
        op -> {
          if (op.sequenceNumber() == 4) {
            throw new TimeoutException("no data");
          }
        };
    Role other =
        group -> {
          group.allReduce(Tensor.of(1f));
          group.allReduce(Tensor.of(1f, 2f, 3f));
          group.broadcast(Tensor.of(1f), 0);
          others.countDown();
        };
    List<CollectiveException> failures =
        play(
            Duration.ZERO,
            provider,
            group -> {
              group.allReduce(Tensor.of(1f));
              group.broadcast(Tensor.of(1f, 2f), 0);
              group.allReduce(Tensor.of(1f));
              others.await();
              assertThat(catchThrowable(() -> group.allReduce(Tensor.of(1f)))).isNotNull();
            },
            other,
            other);
    for (CollectiveException failure : failures) {
      assertThat(failure)
          .hasMessageContaining(
              "ranks disagree: rank 0 called broadcast #2 float32[2] with root 0, ranks 1, 2 called"
                  + " allReduce #2 float32[3], rank 1 has not called it (its last collective was"
                  + " #3)");
      assertThat(failure.failedRank()).hasValue(0);
    }
  }

  @Simulated
  void ranksThatDoNotReportTheirCallsLeaveAMismatchWithoutARankToBlame() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.collective =
        op -> {
          throw new PeerMismatchException("another size");
        };
    for (CollectiveException failure :
        play(
            Duration.ofSeconds(4),
            provider,
            group ->
                assertThat(catchThrowable(() -> group.allReduce(Tensor.of(1f))))
                    .isInstanceOf(MismatchException.class),
            group -> {},
            group -> {})) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure)
          .hasMessageContaining("another size; ranks 1, 2 did not report a call in time");
    }
  }

  @Simulated
  void aSendNamesAnIdlePeer() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.send = op -> {};
    for (CollectiveException failure :
        play(
            KNOWN,
            provider,
            group -> {
              CollectiveTimeoutException own =
                  catchThrowableOfType(
                      CollectiveTimeoutException.class,
                      () -> group.send(Tensor.of(0f), 1, 4, brief()));
              assertThat(own).hasMessageContaining("timed out in send #1 to rank 1, tag 4");
            },
            group -> {})) {
      assertThat(failure.failedRank()).hasValue(1);
      assertThat(failure).hasMessageContaining("rank 1 did not receive in time");
    }
  }

  /**
   * Simulates rank 1, and rank 0, which then waits for a message that rank 1 does not send; rank 2
   * is idle.
   */
  private static List<CollectiveException> playSilence(
      int size, int tag, ScriptedProvider provider, Role peer) throws Exception {
    CountDownLatch played = new CountDownLatch(1);
    Role[] roles = {
      group -> {
        played.await();
        receiveInVain(group, 1, tag);
      },
      group -> {
        peer.play(group);
        played.countDown();
      },
      group -> {}
    };
    return play(KNOWN, provider, Arrays.copyOf(roles, size));
  }

  @Simulated
  void aPeerThatWaitsItselfPassesTheBlameOn() throws Exception {
    for (CollectiveException failure :
        playSilence(
            3, 0, ScriptedProvider.deaf(), group -> group.recv(Tensor.of(0f), 2, 3, async()))) {
      assertThat(failure.failedRank()).hasValue(2);
      assertThat(failure)
          .hasMessageContaining(
              "rank 1 did not send in time; it waits in recv #1 from rank 2, tag 3, rank 2 did not"
                  + " send in time");
    }
  }

  @Simulated
  void ranksThatWaitForEachOtherAreNotBlamed() throws Exception {
    for (CollectiveException failure :
        playSilence(
            2, 0, ScriptedProvider.deaf(), group -> group.recv(Tensor.of(0f), 0, 3, async()))) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure)
          .hasMessageContaining(
              "rank 1 did not send in time; it waits in recv #1 from rank 0, tag 3");
    }
  }

  private static Role inAllReduce(CountDownLatch called) {
    return group -> {
      group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      called.countDown();
    };
  }

  /** Returns a backend whose collectives end when the group has failed on all ranks. */
  private static ScriptedProvider standing(int size) {
    ScriptedProvider provider = ScriptedProvider.deaf();
    CountDownLatch aborted = new CountDownLatch(size);
    provider.abort = cause -> aborted.countDown();
    provider.collective =
        op -> {
          aborted.await();
          throw new IllegalStateException("aborted");
        };
    return provider;
  }

  @Simulated
  void aPeerThatWaitsInACollectivePassesTheBlameOnToWhoHasNotCome() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    List<CollectiveException> failures =
        play(
            KNOWN,
            standing(3),
            group -> {
              group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
              called.await();
              receiveInVain(group, 1, 0);
            },
            inAllReduce(called),
            group -> {});
    for (CollectiveException failure : failures) {
      assertThat(failure.failedRank()).hasValue(2);
      assertThat(failure)
          .hasMessageContaining(
              "rank 1 did not send in time; it waits in allReduce #1, rank 2 has not called it (it"
                  + " has called no collective so far)");
    }
  }

  @Simulated
  void whoWaitsForAPeerThatWaitsForItInACollectiveIsNotBlamed() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    List<CollectiveException> failures =
        play(
            KNOWN,
            standing(2),
            group -> {
              called.await();
              receiveInVain(group, 1, 0);
            },
            inAllReduce(called));
    for (CollectiveException failure : failures) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure)
          .hasMessageContaining(
              "rank 1 did not send in time; it waits in allReduce #1, rank 0 has not called it");
    }
  }

  /** Neither the messages that wait for a collective nor their ranks keep it from completing. */
  @Simulated
  void aCollectiveToWhichAllRanksCameIsSaidToBe() throws Exception {
    CountDownLatch called = new CountDownLatch(2);
    List<CollectiveException> failures =
        play(
            KNOWN,
            standing(2),
            group -> {
              inAllReduce(called).play(group);
              called.await();
              receiveInVain(group, 1, 0);
            },
            group -> {
              group.recv(Tensor.of(0f), 0, 3, async());
              inAllReduce(called).play(group);
            });
    for (CollectiveException failure : failures) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure)
          .hasMessageContaining(
              "rank 1 did not send in time; it waits in allReduce #1, all ranks have called it by"
                  + " now");
    }
  }

  @Simulated
  void messagesOfAnotherTagAreCounted() throws Exception {
    for (CollectiveException failure :
        playSilence(
            2, 3, ScriptedProvider.deaf(), group -> group.send(Tensor.of(0f), 0, 5, async()))) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure)
          .hasMessageContaining("rank 1 sent 1 messages to rank 0, which received 0 of them");
    }
  }

  @Simulated
  void aPeerThatCalledIsNotBlamed() throws Exception {
    ScriptedProvider provider = ScriptedProvider.deaf();
    provider.send = op -> {};
    for (CollectiveException failure :
        playSilence(2, 3, provider, group -> group.send(Tensor.of(0f), 0, 3, async()))) {
      assertThat(failure.failedRank()).isEmpty();
      assertThat(failure).hasMessageContaining("rank 1 called send with that tag");
    }
  }

  @Simulated
  void aStoppedRankLearnsWhatTheOthersFound() throws Exception {
    StuckStore stuck = new StuckStore();
    HashStore shared = Simulation.store();
    CountDownLatch issued = new CountDownLatch(1);
    CountDownLatch judged = new CountDownLatch(2);
    CountDownLatch ended = new CountDownLatch(3);
    List<CollectiveException> failures =
        Simulation.ranks(
            3,
            shared,
            new ScriptedProvider(),
            (options, rank) -> {
              CountDownLatch aborted = new CountDownLatch(1);
              ScriptedProvider provider = new ScriptedProvider();
              provider.abort = cause -> aborted.countDown();
              provider.collective =
                  op -> {
                    aborted.await();
                    throw new IllegalStateException("aborted");
                  };
              try (ProcessGroup group =
                  ProcessGroup.init(
                      rank == 2
                          ? options.withProvider(provider).withStore(stuck.around(shared))
                          : options.withProvider(provider))) {
                if (rank == 2) {
                  // Simulates a stopped process: it has arrived, but it does not answer.
                  stuck.stuck = true;
                  group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
                  issued.countDown();
                  judged.await();
                  stuck.stuck = false;
                  stuck.released.countDown();
                } else {
                  issued.await();
                  group.allReduce(
                      Tensor.of(1f), ReduceOp.SUM, CallOptions.timeout(SHORT).withAsync());
                }
                CollectiveException failure = Simulation.failure(group);
                assertThat(Simulation.now()).isEqualTo(Duration.ofMillis(800).plusSeconds(5));
                judged.countDown();
                Simulation.endTogether(ended);
                return failure;
              }
            });
    for (CollectiveException failure : failures) {
      assertThat(failure.failedRank()).hasValue(2);
      assertThat(failure).hasMessageContaining("rank 2 does not answer");
    }
    assertThat(failures.get(2)).hasMessageContaining("this rank, 2, made no progress");
    assertThat(failures.get(1)).message().doesNotContain("this rank, ");
  }

  @Simulated
  void aRankThatClosedIsNotCalledGone() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch closed = new CountDownLatch(1);
    CountDownLatch ended = new CountDownLatch(2);
    provider.collective =
        op -> {
          closed.await();
          throw new PeerLostException(1, "end of stream", null);
        };
    List<Throwable> failures =
        Simulation.ranks(
            3,
            Simulation.store(),
            provider,
            (options, rank) -> {
              if (rank == 1) {
                ProcessGroup.init(options).close();
                closed.countDown();
                return null;
              }
              try (ProcessGroup group = ProcessGroup.init(options)) {
                Throwable failure;
                if (rank == 0) {
                  failure = catchThrowable(() -> group.allReduce(Tensor.of(1f)));
                } else {
                  failure = Simulation.failure(group);
                }
                Simulation.endTogether(ended);
                return failure;
              }
            });
    assertThat(failures.get(0))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 1 closed its group, while this rank was in allReduce #1");
    assertThat(failures.get(2))
        .hasMessageContaining("rank 1 closed its group, while rank 0 was in");
    assertThat(((CollectiveException) failures.get(2)).failedRank()).hasValue(1);
  }

  /** Closes after a refused call, as the end of a {@code try} does. */
  @Simulated
  void whoWaitsForARankThatClosedLearnsWhatItWasRefused() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch closed = new CountDownLatch(1);
    provider.collective =
        op -> {
          if (op.sequenceNumber() > 1) {
            closed.await();
            throw new PeerLostException(1, "end of stream", null);
          }
        };
    Simulation.groups(
        2,
        Simulation.store(),
        provider,
        group -> {
          refused(group, "peer must be a rank in 0..1, not 8", g -> g.send(Tensor.of(1f), 8));
          group.allReduce(Tensor.of(1f));
          if (group.rank() == 1) {
            // The last refusal counts, and no call was accepted after it.
            refused(group, "not 9", g -> g.send(Tensor.of(1f), 9));
            refused(group, "BAND", g -> g.allReduce(Tensor.of(1f), ReduceOp.BAND));
            group.close();
            closed.countDown();
            return null;
          }
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1f)))
              .isInstanceOf(PeerFailedException.class)
              .hasMessageContaining(
                  "rank 1 closed its group, while this rank was in allReduce #2: end of stream; its"
                      + " last call was refused: allReduce on rank 1/2 of group 0: reduce op BAND"
                      + " is not defined on dtype float32");
          return null;
        });
  }

  @Simulated
  void aRefusalBeforeACallThatWasTakenIsNotTold() throws Exception {
    ScriptedProvider provider = ScriptedProvider.deaf();
    CountDownLatch closed = new CountDownLatch(1);
    Simulation.groups(
        2,
        Simulation.store(),
        provider,
        group -> {
          if (group.rank() == 1) {
            refused(group, "not 9", g -> g.send(Tensor.of(1f), 9));
            group.barrier();
            group.close();
            closed.countDown();
            return null;
          }
          group.barrier();
          closed.await();
          receiveInVain(group, 1, 0);
          assertThat(group.failure().orElseThrow())
              .hasMessageContaining("; rank 1 closed the group [");
          return null;
        });
  }

  private interface RefusedCall {
    void run(ProcessGroup group);
  }

  private static void refused(ProcessGroup group, String why, RefusedCall call) {
    assertThatThrownBy(() -> call.run(group))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(why);
  }

  @Simulated
  void aTimeoutNamesARankThatClosed() throws Exception {
    CountDownLatch closed = new CountDownLatch(1);
    ScriptedProvider provider = ScriptedProvider.deaf();
    Simulation.groups(
        2,
        Simulation.store(),
        provider,
        group -> {
          if (group.rank() == 1) {
            group.close();
            closed.countDown();
            return null;
          }
          closed.await();
          receiveInVain(group, 1, 0);
          CollectiveException failure = (CollectiveException) group.failure().orElseThrow();
          assertThat(failure).hasMessageContaining("; rank 1 closed the group");
          assertThat(failure.failedRank()).hasValue(1);
          return null;
        });
  }
}
