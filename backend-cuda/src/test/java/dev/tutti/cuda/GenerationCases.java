package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Elastic;
import dev.tutti.checkpoint.ElasticOptions;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests groups on devices that go on with other members. */
@Timeout(300)
public abstract class GenerationCases {
  private static final int EVENTS = 8;
  private static final int ROUNDS = 10; // of two generations each

  protected final FakeMachine machine = new FakeMachine(3);
  protected final HashStore store = new HashStore();
  private final Set<Thread> before = Thread.getAllStackTraces().keySet();

  /** Returns ranks on the backend under test. */
  protected abstract CudaRanks ranks();

  /** Returns what the backend has outside of the driver. */
  protected abstract int communicators();

  @AfterEach
  void nothingIsLeft() {
    machine.close();
    assertThat(communicators()).isZero();
  }

  protected static int sum(ProcessGroup group, CudaDevice device, int own) {
    try (Arena arena = Arena.ofShared()) {
      Tensor tensor = device.tensors().allocate(arena, DType.INT32, 1);
      device.tensors().copyFromHost(tensor, Tensor.of(own));
      group.allReduce(tensor);
      return device.tensors().toHost(tensor).toIntArray()[0];
    }
  }

  /** Waits for a sum to which not all ranks come. */
  private static void fail(ProcessGroup group, CudaDevice device) {
    fail(group, device, CallOptions.DEFAULT);
  }

  private static void fail(ProcessGroup group, CudaDevice device, CallOptions options) {
    try (Arena arena = Arena.ofShared()) {
      Tensor tensor = device.tensors().allocate(arena, DType.INT32, 1);
      assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM, options).await())
          .isInstanceOf(CollectiveException.class);
      Until.holds("the end of the kernel", device.currentStream()::isIdle);
    }
  }

  /** Runs a process that joins, on the last device. */
  private FutureTask<Void> joiner(CudaRanks ranks, CudaRanks.Body body) {
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              CudaDevice device = machine.cuda.device(2);
              try (CudaStream.Scope _ = device.poolStream().use();
                  ProcessGroup group = ProcessGroup.join(joining(ranks))) {
                body.run(group, device);
              }
              return null;
            });
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  private GroupOptions joining(CudaRanks ranks) {
    return ranks.options(store, 2, 3);
  }

  @Test
  void ranksThatAreLeftGoOn() throws Exception {
    ranks()
        .run(
            store,
            3,
            (group, device) -> {
              assertThat(group.capabilities().has(Feature.RECONFIGURE)).isTrue();
              assertThat(sum(group, device, group.rank() + 1)).isEqualTo(6);
              if (group.rank() == 1) {
                return;
              }
              fail(group, device);
              int self = group.rank() / 2;
              try (ProcessGroup next = group.shrink()) {
                assertThat(next.name()).startsWith("0~");
                assertThat(next.rank()).isEqualTo(self);
                assertThat(group.isClosed()).isTrue();
                for (int i = 1; i <= 5; i++) {
                  assertThat(sum(next, device, i + self)).isEqualTo(2 * i + 1);
                }
                exchange(next, device);
              }
            });
  }

  /** Sends a number in each direction. */
  private static void exchange(ProcessGroup group, CudaDevice device) {
    int peer = 1 - group.rank();
    Tensor sent = device.tensors().copyOf(Tensor.of(group.rank() + 5));
    Tensor received = device.tensors().copyOf(Tensor.of(0));
    group.batch().send(sent, peer, 0).recv(received, peer, 0).run();
    assertThat(device.tensors().toHost(received).toIntArray()).containsExactly(peer + 5);
  }

  @Test
  void aRankThatStoodStillDuringACollectiveGoesOn() throws Exception {
    CountDownLatch failed = new CountDownLatch(2);
    ranks()
        .run(
            store,
            3,
            (group, device) -> {
              int self = group.rank();
              if (self == 2) {
                assertThat(failed.await(4, TimeUnit.MINUTES)).isTrue();
              } else {
                fail(group, device, CallOptions.timeout(Duration.ofMillis(500)));
                failed.countDown();
              }
              try (ProcessGroup next = group.shrink()) {
                assertThat(sum(next, device, 1 << self)).isEqualTo(7);
              }
            });
  }

  @Test
  void aProcessJoins() throws Exception {
    CudaRanks ranks = ranks();
    FutureTask<Void> third =
        joiner(ranks, (group, device) -> assertThat(sum(group, device, 4)).isEqualTo(7));
    ranks.run(
        store,
        2,
        (group, device) -> {
          int self = group.rank();
          assertThat(sum(group, device, self + 1)).isEqualTo(3);
          try (ProcessGroup more = group.grow(1)) {
            assertThat(more.globalRanks()).containsExactly(0, 1, 2);
            assertThat(sum(more, device, self + 1)).isEqualTo(7);
          }
        });
    third.get(4, TimeUnit.MINUTES);
  }

  @Test
  void aLoneRankGoesOnAndGrows() throws Exception {
    CudaRanks ranks = ranks();
    CountDownLatch alone = new CountDownLatch(1);
    ranks.run(
        store,
        2,
        (group, device) -> {
          if (group.rank() == 0) {
            fail(group, device);
            ProcessGroup one = group.shrink();
            assertThat(sum(one, device, 3)).isEqualTo(3);
            alone.countDown();
            try (ProcessGroup two = one.grow(1)) {
              assertThat(sum(two, device, 3)).isEqualTo(7);
            }
            return;
          }
          group.close();
          assertThat(alone.await(4, TimeUnit.MINUTES)).isTrue();
          joiner(ranks, (again, own) -> assertThat(sum(again, own, 4)).isEqualTo(7))
              .get(4, TimeUnit.MINUTES);
        });
  }

  @Test
  void revokingEndsWhatWaitsOnTheDevice() throws Exception {
    ranks()
        .run(
            store,
            2,
            (group, device) -> {
              int self = group.rank();
              assertThat(sum(group, device, 1)).isEqualTo(2);
              if (self == 1) {
                group.store().await(List.of("waits"), Until.LONG);
                group.revoke("a host is to go");
              } else {
                Tensor tensor = device.tensors().copyOf(Tensor.of(1));
                Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
                group.store().set("waits", new byte[1]);
                assertThatThrownBy(work::await)
                    .isInstanceOfSatisfying(
                        AbortedException.class, e -> assertThat(e.failedRank()).isEmpty())
                    .hasMessageContaining("revoked the group: a host is to go");
                Until.holds("the end of the kernel", device.currentStream()::isIdle);
              }
              try (ProcessGroup next = group.shrink()) {
                assertThat(sum(next, device, self + 1)).isEqualTo(3);
              }
            });
  }

  /** Loses a rank in the fourth of six steps, in each of which the ranks count themselves. */
  @Test
  void trainingGoesOnWithTheRanksThatAreLeft() throws Exception {
    CudaRanks ranks = ranks().besideHost();
    ElasticOptions options = ElasticOptions.DEFAULT.withSize(2, 3).withGroup(joining(ranks));
    List<Long> counted = Collections.synchronizedList(new ArrayList<>());
    ranks.run(
        store,
        3,
        (first, device) -> {
          boolean isLost = first.rank() == 1;
          Elastic.Program program =
              generation -> {
                Tensor count = Tensor.of(0L);
                Contents state = Contents.of().copies("count", List.of("count"), List.of(count));
                for (long step = generation.restore(state); step < 6; step++) {
                  if (isLost && step == 3) {
                    throw new IllegalStateException("a bad record");
                  }
                  long sum = sum(generation.group(), device, 1);
                  count.setLong(0, count.getLong(0) + sum);
                  generation.commit(step + 1);
                }
                counted.add(count.getLong(0));
              };
          if (isLost) {
            assertThatThrownBy(() -> Elastic.run(first, options, program))
                .hasMessage("a bad record");
          } else {
            Elastic.run(first, options, program);
          }
        });
    assertThat(counted).containsExactly(15L, 15L);
  }

  /** What a job has in a generation of two ranks. */
  private record Remains(
      Map<String, Integer> living, long bytes, int communicators, List<String> threads, int keys) {}

  private Remains remains(String group) {
    List<String> expected = List.of("tutti-gloo-" + group + "-0", "tutti-gloo-" + group + "-1");
    Until.holds("the end of other threads", () -> threads().equals(expected));
    int events = 0;
    for (int d = 0; d < machine.cuda.deviceCount(); d++) {
      CudaDevice device = machine.cuda.device(d);
      device.tensors().releaseCached();
      events += device.events().inUse();
    }
    assertThat(events).as("events in use").isLessThanOrEqualTo(EVENTS);
    Map<String, Integer> living = new TreeMap<>(machine.fake.living());
    living.remove("event"); // of the pool: as many as were ever needed at once
    return new Remains(
        living,
        machine.fake.memory().used(),
        communicators(),
        threads().stream().map(name -> name.replaceAll("~\\d+", "")).toList(),
        store.listKeys().size());
  }

  private List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> !before.contains(thread))
        .map(Thread::getName)
        .filter(name -> name.startsWith("tutti-"))
        .filter(name -> !name.matches("tutti-(mon-[01]|wd|idle)"))
        .sorted()
        .toList();
  }

  @Test
  void nothingIsLeftOfTwentyGenerations() throws Exception {
    CudaRanks ranks = ranks();
    List<Remains> found = Collections.synchronizedList(new ArrayList<>());
    ranks.run(
        store,
        2,
        (first, device) -> {
          ProcessGroup group = first;
          int self = group.rank();
          for (int round = 1; round <= ROUNDS; round++) {
            FutureTask<Void> third =
                self == 0
                    ? joiner(ranks, (each, own) -> assertThat(sum(each, own, 4)).isEqualTo(7))
                    : null;
            ProcessGroup more = group.grow(1);
            assertThat(sum(more, device, self + 1)).isEqualTo(7);
            if (third != null) {
              third.get(4, TimeUnit.MINUTES);
            }
            fail(more, device);
            group = more.shrink();
            assertThat(sum(group, device, self + 1)).isEqualTo(3);
            if (round == 2 || round == ROUNDS) {
              group.store().barrier("before", 2, Until.LONG);
              if (self == 0) {
                found.add(remains(group.name()));
              }
              group.store().barrier("after", 2, Until.LONG);
            }
          }
          group.close();
        });
    assertThat(found).hasSize(2);
    assertThat(found.get(1)).isEqualTo(found.get(0));
  }
}
