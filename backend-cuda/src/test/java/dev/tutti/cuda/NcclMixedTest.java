package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.P2pOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests groups on a played NCCL with a rank that makes the calls of PyTorch. */
@Timeout(60)
class NcclMixedTest {
  private static final String PREFIX = "0//cuda//";
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final P2pOptions ASYNC = P2pOptions.DEFAULT.withAsync();

  private final HashStore store = new HashStore();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() {
    machine = new FakeMachine(3);
    nccl = new FakeNccl(machine.fake);
  }

  @AfterEach
  void nothingIsLeft() {
    threads.shutdownNow();
    Until.holds("the end of all communicators", () -> nccl.communicators() == 0);
    machine.close();
  }

  private GroupOptions options(int rank, int size, boolean lazy, Duration timeout) {
    return GroupOptions.defaults()
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withDevice(Device.cuda(rank))
        .withProvider(
            new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl))
        .withSettings(
            Settings.ofEnvironment(
                Map.of("TUTTI_CLOSE_TIMEOUT", "200ms", "TUTTI_NCCL_LAZY", lazy ? "1" : "0")))
        .withTimeout(timeout);
  }

  private interface Foreign {
    void run(ForeignRank rank) throws Exception;
  }

  private interface Own {
    void run(ProcessGroup group, CudaDevice device) throws Exception;
  }

  private Future<?> foreign(int rank, int size, String prefix, Foreign body) {
    return threads.submit(
        () -> {
          body.run(new ForeignRank(nccl, machine.cuda.device(rank), store, prefix, rank, size));
          return null;
        });
  }

  private Future<?> own(int rank, int size, boolean lazy, Duration timeout, Own body) {
    return threads.submit(
        () -> {
          CudaDevice device = machine.cuda.device(rank);
          try (CudaStream.Scope _ = device.poolStream().use();
              ProcessGroup group = ProcessGroup.init(options(rank, size, lazy, timeout))) {
            body.run(group, device);
          }
          return null;
        });
  }

  private static void end(Future<?>... all) throws Exception {
    for (Future<?> each : all) {
      each.get(40, TimeUnit.SECONDS);
    }
  }

  private static Tensor floats(CudaDevice device, float... values) {
    return device.tensors().copyOf(Tensor.of(values));
  }

  private static float[] read(CudaDevice device, Tensor tensor) {
    return device.tensors().toHost(tensor).toFloatArray();
  }

  private List<String> keys() {
    List<String> found = new ArrayList<>();
    for (String key : List.of("0", "0:1", "0:2", "1:2")) {
      if (store.check(List.of(PREFIX + key))) {
        found.add(key);
      }
    }
    return found;
  }

  /** Takes the id from its key, and makes NCCL's calls in one communicator. */
  @Test
  void collectivesAndMessagesAreInTheCommunicatorOfTheGroup() throws Exception {
    Future<?> foreign =
        foreign(
            1,
            2,
            PREFIX,
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
        own(
            0,
            2,
            false,
            LIMIT,
            (group, device) -> {
              Tensor tensor = floats(device, 1, 2);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(11, 22);
              Work send = group.send(floats(device, 5, 6), 1, ASYNC);
              Work recv = group.recv(tensor, 1, ASYNC);
              send.await();
              recv.await();
              assertThat(recv.sourceRank()).isOne();
              assertThat(read(device, tensor)).containsExactly(7, 8);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(12, 14);
            });
    end(own, foreign);
    assertThat(keys()).containsExactly("0");
    assertThat(nccl.calls("ncclCommInitRankConfig")).isEqualTo(2);
  }

  @Test
  void aBatchIsOneCall() throws Exception {
    Future<?> foreign =
        foreign(
            0,
            2,
            PREFIX,
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
        own(
            1,
            2,
            false,
            LIMIT,
            (group, device) -> {
              Tensor received = floats(device, 0);
              Work work = group.batch().recv(received, 0, 0).send(floats(device, 4), 0, 0).start();
              work.await();
              assertThat(read(device, received)).containsExactly(3);
            });
    end(own, foreign);
    assertThat(nccl.calls("ncclGroupStart")).isEqualTo(2);
    assertThat(keys()).containsExactly("0");
  }

  @Test
  void whatNcclCannotIsRefusedAndTheGroupGoesOn() throws Exception {
    Future<?> foreign =
        foreign(
            1,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              rank.sum(main, rank.floats(1));
              main.close();
            });
    Future<?> own =
        own(
            0,
            2,
            false,
            LIMIT,
            (group, device) -> {
              Tensor tensor = floats(device, 1);
              assertThatThrownBy(() -> group.send(tensor, 1, P2pOptions.DEFAULT.withTag(3)))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("the tag must be 0, not 3");
              assertThatThrownBy(() -> group.recvAnySource(tensor))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("of a rank that is named, not of any");
              assertThatThrownBy(() -> group.split(0, 0))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("subgroup(ranks) is their new_group");
              group.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(2);
            });
    end(own, foreign);
  }

  @Test
  void aRecordedMessageIsReplayed() throws Exception {
    Future<?> foreign =
        foreign(
            1,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              Tensor tensor = rank.floats(0);
              rank.receive(main, 0, tensor);
              rank.receive(main, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(9);
              main.close();
            });
    Future<?> own =
        own(
            0,
            2,
            false,
            LIMIT,
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
  void namesTheCauseWhereTheOtherRankWaitsInACommunicatorOfTheTwo() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign =
        foreign(
            0,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              store.set(PREFIX + "0:1", nccl.uniqueId());
              assertThat(named.await(30, TimeUnit.SECONDS)).isTrue();
              main.close();
            });
    Future<?> own =
        own(
            1,
            2,
            false,
            LIMIT,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              long start = System.nanoTime();
              assertThatThrownBy(() -> group.recv(tensor, 0))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("rank 0 of PyTorch was given no device_id")
                  .hasMessageContaining("set TUTTI_NCCL_LAZY=1 for all ranks of Tutti");
              assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(15));
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void aMessageThatNobodyTakesEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign =
        foreign(
            0,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              assertThat(named.await(30, TimeUnit.SECONDS)).isTrue();
              main.close();
            });
    Future<?> own =
        own(
            1,
            2,
            false,
            Duration.ofSeconds(5),
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              P2pOptions soon = P2pOptions.DEFAULT.withTimeout(Duration.ofMillis(300));
              assertThatThrownBy(() -> group.recv(tensor, 0, soon))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining(
                      "the operation did not end in time; if the other rank is one")
                  .hasMessageContaining("set TUTTI_NCCL_LAZY=1");
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void lazyMessagesHaveACommunicatorForEachTwoRanks() throws Exception {
    Future<?> foreign =
        foreign(
            1,
            3,
            PREFIX,
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
        own(
            0,
            3,
            true,
            LIMIT,
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
        own(
            2,
            3,
            true,
            LIMIT,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              Work work = group.recv(tensor, 1, ASYNC);
              work.await();
              assertThat(work.sourceRank()).isOne();
              assertThat(read(device, tensor)).containsExactly(7);
              Tensor sum = floats(device, 2);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(8);
            });
    end(first, last, foreign);
    assertThat(keys()).containsExactly("0", "0:1", "1:2");
  }

  @Test
  void aLazyBatchIsInTheCommunicatorOfTheGroup() throws Exception {
    Future<?> first =
        own(
            0,
            2,
            true,
            LIMIT,
            (group, device) -> {
              Tensor received = floats(device, 0);
              group.batch().send(floats(device, 1), 1, 0).recv(received, 1, 0).run();
              assertThat(read(device, received)).containsExactly(2);
            });
    Future<?> second =
        foreign(
            1,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              rank.send(main, 0, rank.floats(2));
              Tensor tensor = rank.floats(0);
              rank.receive(main, 0, tensor);
              assertThat(rank.read(tensor)).containsExactly(1);
              main.close();
            });
    end(first, second);
    assertThat(keys()).containsExactly("0");
  }

  @Test
  void aLazyMessageEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    end(
        own(
            0,
            2,
            true,
            Duration.ofSeconds(5),
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              P2pOptions soon = P2pOptions.DEFAULT.withTimeout(Duration.ofMillis(300));
              assertThatThrownBy(() -> group.send(tensor, 1, soon))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("the operation did not end in time; if there are ranks of")
                  .hasMessageContaining("leave TUTTI_NCCL_LAZY unset");
            }));
  }

  @Test
  void aLazyCollectiveThatRanksDoNotComeToEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    end(
        own(
            1,
            2,
            true,
            Duration.ofSeconds(1),
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              assertThatThrownBy(() -> group.allReduce(tensor))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("the operation did not end in time; if there are ranks of")
                  .hasMessageContaining("leave TUTTI_NCCL_LAZY unset");
            }));
  }

  @Test
  void anAbortEndsLazyMessagesThatWaitForTheirRanks() throws Exception {
    end(
        own(
            1,
            3,
            true,
            LIMIT,
            (group, device) -> {
              Work above = group.send(floats(device, 0), 2, ASYNC);
              Work below = group.recv(floats(device, 0), 0, ASYNC);
              Until.holds("NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 1);
              group.abort("enough");
              for (Work work : List.of(above, below)) {
                assertThatThrownBy(() -> work.await(LIMIT)).isInstanceOf(TuttiException.class);
              }
            }));
  }

  @Test
  void ranksOfTuttiWithOtherSettingsAreRefused() throws Exception {
    Future<?> lazy = own(0, 2, true, LIMIT, (group, device) -> group.barrier());
    Future<?> eager = own(1, 2, false, LIMIT, (group, device) -> group.barrier());
    for (Future<?> each : List.of(lazy, eager)) {
      assertThatThrownBy(() -> each.get(40, TimeUnit.SECONDS))
          .hasStackTraceContaining("all ranks of Tutti need the same");
    }
  }

  @Test
  void aSubgroupIsMadeByASplit() throws Exception {
    CountDownLatch counted = new CountDownLatch(1);
    Future<?> foreign =
        foreign(
            0,
            3,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              Communicator part =
                  main.split("part", NcclSubgroups.color(List.of(0, 2)), 0, soon(), () -> {});
              Tensor tensor = rank.floats(1);
              rank.sum(part, tensor);
              assertThat(rank.read(tensor)).containsExactly(4);
              rank.receive(part, 1, tensor);
              assertThat(rank.read(tensor)).containsExactly(9);
              assertThat(main.split("none", NcclCalls.NO_COLOR, 0, soon(), () -> {})).isNull();
              rank.sum(main, tensor);
              assertThat(rank.read(tensor)).containsExactly(12);
              part.close();
              main.close();
              counted.countDown();
            });
    Future<?> outside =
        own(
            1,
            3,
            false,
            LIMIT,
            (group, device) -> {
              assertThat(group.subgroup(List.of(0, 2))).isEmpty();
              ProcessGroup pair = group.subgroup(List.of(1, 2)).orElseThrow();
              pair.send(floats(device, 8), 1, P2pOptions.DEFAULT.withTag(4));
              Tensor sum = floats(device, 1);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(12);
            });
    Future<?> member =
        own(
            2,
            3,
            false,
            LIMIT,
            (group, device) -> {
              ProcessGroup part = group.subgroup(List.of(0, 2)).orElseThrow();
              Tensor tensor = floats(device, 3);
              part.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(4);
              part.send(floats(device, 9), 0);
              assertThatThrownBy(() -> part.subgroup(List.of(0)))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("the group of all ranks only");
              ProcessGroup pair = group.subgroup(List.of(1, 2)).orElseThrow();
              pair.recv(tensor, 0, P2pOptions.DEFAULT.withTag(4));
              assertThat(read(device, tensor)).containsExactly(8);
              Tensor sum = floats(device, 2);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(12);
            });
    end(outside, member, foreign);
    byte[] id = store.get(PREFIX + "0", LIMIT);
    int color = NcclSubgroups.color(List.of(0, 2));
    assertThat(nccl.colors(id, 0)).isEqualTo(Map.of(0, color, 1, -1, 2, color));
    int other = NcclSubgroups.color(List.of(1, 2));
    assertThat(nccl.colors(id, 1)).isEqualTo(Map.of(0, -1, 1, other, 2, other));
  }

  private static long soon() {
    return ForeignRank.soon();
  }

  @Test
  void aSubgroupThatARankDoesNotComeToFailsTheGroup() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign =
        foreign(
            0,
            2,
            PREFIX,
            rank -> {
              Communicator main = rank.main();
              assertThat(named.await(30, TimeUnit.SECONDS)).isTrue();
              main.close();
            });
    Future<?> own =
        own(
            1,
            2,
            false,
            Duration.ofSeconds(2),
            (group, device) -> {
              assertThatThrownBy(() -> group.subgroup(List.of(0)))
                  .isInstanceOf(TuttiException.class)
                  .hasStackTraceContaining("did not all come to split the communicator of NCCL")
                  .hasStackTraceContaining("set TUTTI_NCCL_LAZY=1 for all ranks of Tutti");
              assertThatThrownBy(() -> group.barrier()).isInstanceOf(TuttiException.class);
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void aLazySubgroupMeetsUnderItsOwnKeys() throws Exception {
    Future<?> foreign =
        foreign(
            0,
            2,
            "0//1//cuda//",
            rank -> {
              Communicator pair = rank.pair(1);
              rank.send(pair, 1, rank.floats(3));
              Communicator main = rank.main();
              rank.sum(main, rank.floats(1));
              pair.close();
              main.close();
            });
    Future<?> own =
        own(
            1,
            2,
            true,
            LIMIT,
            (group, device) -> {
              ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow();
              Tensor tensor = floats(device, 0);
              part.recv(tensor, 0);
              part.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(4);
            });
    end(own, foreign);
  }

  @Test
  void colorsAreThoseOfPython() {
    assertThat(NcclSubgroups.color(List.of(0, 1))).isEqualTo(2130503744);
    assertThat(NcclSubgroups.color(List.of(1, 2, 3))).isEqualTo(1729875179);
    assertThat(NcclSubgroups.color(List.of(0, 1, 2, 3, 4, 5, 6, 7))).isEqualTo(1266629538);
    assertThat(NcclSubgroups.color(List.of(5))).isEqualTo(14136057);
  }

  /** Lets rank 0 guess that there are ranks of PyTorch, as rank 1 comes late. */
  @Test
  void ranksOfTuttiThatComeLateAreAloneNevertheless() throws Exception {
    Future<?> first =
        own(
            0,
            2,
            false,
            LIMIT,
            (group, device) -> group.send(floats(device, 4), 1, P2pOptions.DEFAULT.withTag(6)));
    Until.holds("the guess", () -> store.check(List.of(PREFIX + "tutti/alone")));
    assertThat(store.get(PREFIX + "tutti/alone", LIMIT)).containsExactly('0');
    Future<?> second =
        own(
            1,
            2,
            false,
            LIMIT,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              group.recv(tensor, 0, P2pOptions.DEFAULT.withTag(6));
              assertThat(read(device, tensor)).containsExactly(4);
            });
    end(first, second);
    assertThat(nccl.calls("ncclCommSplit")).isGreaterThanOrEqualTo(2);
  }
}
