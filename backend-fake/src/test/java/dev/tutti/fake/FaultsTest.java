package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("threads of other tests in shared locks would bring in real time")
class FaultsTest {
  private static final Duration BRIEF = Duration.ofMillis(150);

  private final Faults faults = new Faults();

  private ThreadedWorld world(int size) {
    return Worlds.simulated(size).withFaults(faults);
  }

  private void assertBarrierTimesOut(int size) {
    List<Throwable> failures =
        world(size).call(group -> catchThrowable(() -> group.barrier(CallOptions.timeout(BRIEF))));
    assertThat(failures).hasSize(size).hasOnlyElementsOfType(CollectiveTimeoutException.class);
  }

  @Simulated(seeds = 5)
  void withoutFaultsNothingChanges() {
    List<Double> sums =
        world(3)
            .call(
                group -> {
                  Tensor tensor = Tensor.of(group.rank() + 1f);
                  group.allReduce(tensor);
                  return tensor.getDouble(0);
                });
    assertThat(sums).containsExactly(6.0, 6.0, 6.0);
  }

  @Simulated(seeds = 5)
  void aDelayedRankHoldsTheOthersUp() {
    Duration delay = Duration.ofMillis(100);
    faults.delay(1, delay);
    List<Duration> ends =
        world(2)
            .call(
                group -> {
                  group.barrier();
                  return Simulation.now();
                });
    assertThat(ends).containsExactly(delay, delay);
  }

  @Simulated(seeds = 5)
  void delayedMessagesArriveLateAndInOrder() {
    Duration delay = Duration.ofMillis(100);
    faults.delay(0, delay);
    List<Duration> ends =
        world(2)
            .call(
                group -> {
                  if (group.rank() == 0) {
                    List<Work> works =
                        IntStream.range(0, 20)
                            .mapToObj(i -> group.send(Tensor.of(i), 1, 0, CallOptions.ASYNC))
                            .toList();
                    faults.delay(0, Duration.ZERO);
                    Work last = group.send(Tensor.of(20), 1, 0, CallOptions.ASYNC);
                    works.forEach(Work::await);
                    last.await();
                    return Simulation.now();
                  }
                  for (int i = 0; i <= 20; i++) {
                    Tensor tensor = Tensor.of(-1);
                    group.recv(tensor, 0);
                    assertThat(tensor.getLong(0)).isEqualTo(i);
                  }
                  return Simulation.now();
                });
    assertThat(ends).containsExactly(delay, delay);
  }

  @Simulated(seeds = 5)
  void aDelayPastTheDeadlineIsATimeout() {
    faults.delay(1, Worlds.PATIENCE);
    assertBarrierTimesOut(2);
  }

  @Simulated(seeds = 5)
  void droppedMessagesRunIntoTheirDeadlines() {
    faults.drop(0, 1);
    world(2)
        .run(
            group -> {
              CallOptions options = CallOptions.timeout(BRIEF);
              if (group.rank() == 1) {
                Work back = group.send(Tensor.of(2), 0, 1, CallOptions.DEFAULT);
                assertThat(back.isSuccess()).isTrue();
                assertThatThrownBy(() -> group.recv(Tensor.of(0), 0, 0, options))
                    .isInstanceOf(CollectiveException.class);
              } else {
                Tensor tensor = Tensor.of(0);
                group.recv(tensor, 1, 1, CallOptions.DEFAULT);
                assertThat(tensor.getLong(0)).isEqualTo(2);
                assertThatThrownBy(() -> group.send(Tensor.of(1), 1, 0, options))
                    .isInstanceOf(CollectiveException.class);
              }
              assertThat(group.failure()).isPresent();
              assertThat(group.failure().get()).hasMessageContaining("did not complete in time");
            });
  }

  @Simulated(seeds = 5)
  void aDropMakesCollectivesTimeOutOnAllRanks() {
    faults.drop(2, 0);
    assertBarrierTimesOut(3);
    // Heal does not restore what was lost, but later operations get through.
    faults.heal();
    world(3).run(ProcessGroup::barrier);
  }

  @Simulated(seeds = 5)
  void aPartitionHoldsRanksUntilItHeals() {
    faults.partition(Set.of(0, 1), Set.of(2));
    CountDownLatch sent = new CountDownLatch(1);
    world(3)
        .run(
            group -> {
              if (group.rank() == 0) {
                Tensor near = Tensor.of(4);
                group.send(near, 1);
                Work far = group.send(Tensor.of(5), 2, 0, CallOptions.ASYNC);
                assertThat(far.await(BRIEF)).isFalse();
                sent.countDown();
                far.await();
              } else if (group.rank() == 1) {
                Tensor near = Tensor.of(0);
                group.recv(near, 0);
                assertThat(near.getLong(0)).isEqualTo(4);
                sent.await();
                Work blocked = group.allReduce(Tensor.of(1), ReduceOp.SUM, CallOptions.ASYNC);
                assertThat(blocked.await(BRIEF)).isFalse();
                faults.heal();
                blocked.await();
                return;
              } else {
                Tensor far = Tensor.of(0);
                group.recv(far, 0);
                assertThat(far.getLong(0)).isEqualTo(5);
              }
              group.allReduce(Tensor.of(1));
            });
  }

  @Simulated(seeds = 5)
  void aPartitionThatStaysIsATimeout() {
    faults.partition(Set.of(0), Set.of(1, 2));
    assertBarrierTimesOut(3);
  }

  @Simulated(seeds = 5)
  void timeoutsTellWhatIsInTheWay() throws Exception {
    faults.partition(Set.of(0), Set.of(1, 2));
    faults.drop(1, 2);
    List<Throwable> failures =
        RawWorld.simulated(
            3,
            new FaultyProvider(new ThreadedProvider(), faults),
            rank -> rank.backend.barrier(rank.op(OpType.BARRIER, BRIEF)));
    assertThat(failures).hasOnlyElementsOfType(TimeoutException.class);
    assertThat(failures)
        .extracting(Throwable::getMessage)
        .containsExactly(
            "barrier #1: rank 0 is cut off from ranks 1, 2 and cannot take part before its"
                + " deadline",
            "barrier #1: rank 1 is cut off from rank 0 and cannot take part before its deadline",
            "barrier #1: rank 2 lost messages of rank 1 and cannot take part before its deadline");
  }

  @Simulated(seeds = 5)
  void aKilledRankIsNamedToThosePeersThatWait() {
    CountDownLatch waiting = new CountDownLatch(2);
    world(3).run(group -> checkDeathOfRankOne(group, waiting));
    assertThat(faults.isKilled(1)).isTrue();
    assertThat(faults.isKilled(0)).isFalse();
  }

  private void checkDeathOfRankOne(ProcessGroup group, CountDownLatch waiting)
      throws InterruptedException {
    group.barrier();
    if (group.rank() == 1) {
      waiting.await();
      faults.kill(1);
    }
    waiting.countDown();
    CollectiveException failure = catchThrowableOfType(CollectiveException.class, group::barrier);
    assertThat(failure).hasMessageContaining("rank 1 was killed");
    assertThat(failure.failedRank()).as("%s", failure).hasValue(1);
  }

  @Simulated(seeds = 5)
  void idlePeersHearOfADeath() {
    world(3).run(this::checkDeathOfRankTwo);
  }

  private void checkDeathOfRankTwo(ProcessGroup group) throws InterruptedException {
    group.barrier();
    if (group.rank() == 2) {
      faults.kill(2);
    }
    assertThat(Simulation.failure(group))
        .isInstanceOf(PeerFailedException.class)
        .extracting(CollectiveException::failedRank)
        .isEqualTo(OptionalInt.of(2));
  }

  @Simulated(seeds = 5)
  void killEndsPendingMessages() {
    world(2)
        .run(
            group -> {
              Work work = group.recv(Tensor.of(0), 1 - group.rank(), 0, CallOptions.ASYNC);
              group.barrier();
              if (group.rank() == 0) {
                faults.kill(0);
              }
              assertThatThrownBy(work::await).isInstanceOf(PeerFailedException.class);
            });
  }

  @Simulated(seeds = 5)
  void theExceptionsOfAKilledRankDoNotFailTheWorld() {
    List<String> results =
        world(2)
            .call(
                group -> {
                  if (group.rank() == 1) {
                    faults.kill(1);
                  }
                  if (group.rank() == 0) {
                    assertThatThrownBy(group::barrier).isInstanceOf(PeerFailedException.class);
                    return "alive";
                  }
                  group.barrier();
                  return "not reached";
                });
    assertThat(results).containsExactly("alive", null);
  }

  @Simulated(seeds = 5)
  void anOperationFailsOnDemand() {
    faults.failOn(1, OpType.ALL_REDUCE, 3);
    world(2)
        .run(
            group -> {
              Tensor tensor = Tensor.of(1f);
              group.allReduce(tensor);
              group.allReduce(tensor);
              assertThat(tensor.getDouble(0)).isEqualTo(4);
              CollectiveException failure =
                  catchThrowableOfType(
                      CollectiveException.class, () -> group.allReduce(tensor, ReduceOp.SUM));
              assertThat(failure)
                  .hasMessageContaining("allReduce #3 of rank 1 was set to fail")
                  .extracting(CollectiveException::failedRank)
                  .isEqualTo(OptionalInt.of(1));
            });
  }

  @Simulated(seeds = 5)
  void aMessageFailsOnDemandOnAllRanks() {
    faults.failOn(OpType.SEND, 2);
    world(2)
        .run(
            group -> {
              int peer = 1 - group.rank();
              Work received = group.recv(Tensor.of(0), peer, 0, CallOptions.ASYNC);
              group.barrier();
              // The first message of this rank is the receive.
              assertThatThrownBy(() -> group.send(Tensor.of(1), peer))
                  .isInstanceOf(CollectiveException.class)
                  .hasMessageContaining("was set to fail");
              assertThatThrownBy(received::await).isInstanceOf(CollectiveException.class);
            });
  }

  @Simulated(seeds = 5)
  void faultsWorkAroundOtherBackends() {
    BackendProvider fake = new FakeProvider();
    faults.failOn(0, OpType.BARRIER, 1);
    Worlds.simulated(1)
        .withProvider(fake)
        .withFaults(faults)
        .run(
            group ->
                assertThatThrownBy(group::barrier)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageContaining("barrier #1 of rank 0 was set to fail"));
    faults.kill(0);
    assertThatThrownBy(
            () ->
                new FaultyProvider(fake, faults)
                    .create(
                        RawWorld.context(0, 1, new HashStore(), BRIEF, new ConcurrentHashMap<>())))
        .isInstanceOf(TuttiException.class)
        .hasMessage("rank 0 was killed");
  }

  @Simulated(seeds = 5)
  void ranksOfSubgroupsAreThoseOfTheWorld() {
    faults.failOn(2, OpType.BARRIER, 2);
    world(3)
        .run(
            group -> {
              List<Integer> members = List.of(1, 2);
              group
                  .subgroup(members)
                  .ifPresent(
                      child ->
                          assertThatThrownBy(
                                  () -> {
                                    // Otherwise the setup of the other rank may see the failure.
                                    child.barrier();
                                    child.barrier();
                                  })
                              .isInstanceOf(CollectiveException.class)
                              .hasMessageContaining("barrier #2 of rank 2 was set to fail"));
            });
  }

  @Simulated(seeds = 5)
  void aPeerSeesTheDeathItself() throws Exception {
    List<Throwable> failures =
        RawWorld.simulated(
            3,
            new FaultyProvider(new ThreadedProvider(), faults),
            rank -> {
              if (rank.rank == 1) {
                faults.kill(1);
              }
              rank.backend.barrier(rank.op(OpType.BARRIER));
            });
    assertThat(failures.get(1))
        .isInstanceOf(InjectedFaultException.class)
        .hasMessage("rank 1 was killed");
    for (int peer : new int[] {0, 2}) {
      assertThat(failures.get(peer))
          .isInstanceOf(PeerLostException.class)
          .extracting(failure -> ((PeerLostException) failure).peer())
          .isEqualTo(1);
    }
  }

  @Simulated(seeds = 5)
  void aRankThatIsDeadFromTheStartIsNamed() {
    faults.kill(1);
    assertThatThrownBy(() -> world(3).run(ProcessGroup::barrier))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 1 was killed")
        .extracting(failure -> ((PeerFailedException) failure).failedRank())
        .isEqualTo(OptionalInt.of(1));
    assertThat(Simulation.now().toMillis()).isLessThan(1000);
  }

  @Simulated(seeds = 5)
  void theExceptionsOfAKilledRankMayBeWrapped() {
    assertThat(world(4).call(this::resultOfDyingRank)).containsExactly(null, null, null, "alive");
  }

  /** Kills all ranks except the last, and fails on each in another way. */
  private String resultOfDyingRank(ProcessGroup group) throws Exception {
    group.barrier();
    if (group.rank() == 3) {
      assertThatThrownBy(group::barrier).isInstanceOf(PeerFailedException.class);
      return "alive";
    }
    faults.kill(group.rank());
    switch (group.rank()) {
      case 0 -> group.barrier(CallOptions.ASYNC).toCompletableFuture().join();
      case 1 -> group.barrier(CallOptions.ASYNC).toCompletableFuture().get(2, TimeUnit.MINUTES);
      default -> {
        group.close();
        group.barrier();
      }
    }
    return "not reached";
  }

  @Simulated(seeds = 5)
  void anAssertionOfAKilledRankFailsTheWorld() {
    AssertionError wrong = new AssertionError("wrong", new TuttiException("cause"));
    assertThatThrownBy(
            () ->
                world(1)
                    .run(
                        group -> {
                          faults.kill(0);
                          throw wrong;
                        }))
        .isSameAs(wrong);
  }
}
