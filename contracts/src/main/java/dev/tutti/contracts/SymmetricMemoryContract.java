package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;

/**
 * Tests of symmetric memory: buffers that all ranks see, and barriers and signals between the
 * ranks.
 */
public interface SymmetricMemoryContract extends GroupContract {
  /** Shows each rank's buffer, initially zero, to all ranks. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void everyRankSeesAllBuffers(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int size = member.size();
          long bytes = 8L * size;
          try (SymmetricMemory memory = member.group().allocateSymmetric(bytes)) {
            assertThat(memory.rank()).isEqualTo(member.rank());
            assertThat(memory.size()).isEqualTo(size);
            assertThat(memory.bufferByteSize()).isEqualTo(bytes);
            assertThat(memory.channels()).isPositive();
            assertThat(memory.device()).isEqualTo(member.scratch(DType.INT64, 1).device());
            assertThat(SymmetricCells.read(member, memory, member.rank(), 0, size))
                .containsOnly(0L);
            memory.barrier(0, Waiting.LONG);
            for (int round = 0; round < 10; round++) {
              for (int peer = 0; peer < size; peer++) {
                SymmetricCells.write(
                    member, memory, peer, member.rank(), 1000 * round + 10 * peer + member.rank());
              }
              memory.barrier(round % memory.channels(), Waiting.LONG);
              long[] own = SymmetricCells.read(member, memory, member.rank(), 0, size);
              for (int peer = 0; peer < size; peer++) {
                assertThat(own[peer]).isEqualTo(1000L * round + 10L * member.rank() + peer);
              }
              memory.barrier(0, Waiting.LONG);
            }
          }
        });
  }

  /** Orders writes before a barrier ahead of reads after it, at any pace. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void barriersOrderWrites(ContractWorld world) throws Exception {
    int cells = 64;
    int rounds = world.isLarge() ? 20 : 200;
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(8L * cells)) {
            for (int round = 1; round <= rounds; round++) {
              long[] values = new long[cells];
              java.util.Arrays.fill(values, (long) round * (member.rank() + 1));
              SymmetricCells.write(member, memory, member.rank(), 0, values);
              memory.barrier(1, Waiting.LONG);
              int peer = (member.rank() + round) % member.size();
              assertThat(SymmetricCells.read(member, memory, peer, 0, cells))
                  .as("buffer of rank %d in round %d", peer, round)
                  .containsOnly((long) round * (peer + 1));
              memory.barrier(1, Waiting.LONG);
            }
          }
        });
  }

  /** Waits with the longest possible timeout. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void waitsTakeTheLongestTimeout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(8)) {
            memory.barrier(0, Waiting.LONGEST);
            memory.putSignal(member.next(), 1, Waiting.LONGEST);
            memory.waitSignal(member.previous(), 1, Waiting.LONGEST);
            memory.barrier(0, Waiting.LONGEST);
          }
        });
  }

  /** Passes data with signals, one at a time, around a ring and back. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void signalsCarryDataOneAtATime(ContractWorld world) throws Exception {
    int rounds = world.isLarge() ? 10 : 100;
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(16)) {
            int channel = memory.channels() - 1;
            for (int round = 1; round <= rounds; round++) {
              SymmetricCells.write(member, memory, member.next(), 0, 100L * round + member.rank());
              memory.putSignal(member.next(), channel, Waiting.LONG);
              memory.waitSignal(member.previous(), channel, Waiting.LONG);
              assertThat(SymmetricCells.read(member, memory, member.rank(), 0, 1))
                  .containsExactly(100L * round + member.previous());
              memory.putSignal(member.previous(), 0, Waiting.LONG);
              memory.waitSignal(member.next(), 0, Waiting.LONG);
            }
          }
        });
  }

  /** Gives channels and pairs of ranks their own signals and barriers. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY, minSize = 2)
  default void channelsAreIndependent(ContractWorld world) throws Exception {
    Duration brief = Duration.ofMillis(20);
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(8)) {
            memory.putSignal(member.next(), 1, Waiting.LONG);
            assertThatThrownBy(() -> memory.waitSignal(member.previous(), 0, brief))
                .isInstanceOf(CollectiveTimeoutException.class);
            assertThatThrownBy(() -> memory.waitSignal(member.rank(), 1, brief))
                .isInstanceOf(CollectiveTimeoutException.class);
            memory.barrier(1, Waiting.LONG);
            memory.waitSignal(member.previous(), 1, Waiting.LONG);
            // Whoever is in a barrier holds up no barrier of another channel.
            try (Calls calls = new Calls()) {
              Future<?> other = null;
              if (member.rank() != 0) {
                other = calls.run(() -> memory.barrier(2, Waiting.LONG));
              }
              memory.barrier(3, Waiting.LONG);
              if (other == null) {
                memory.barrier(2, Waiting.LONG);
              } else {
                Calls.ended(other);
              }
            }
          }
        });
  }

  /** Ends waits at their deadlines, after which the group and the memory continue to work. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY, minSize = 2)
  default void waitsEndAtTheirDeadlines(ContractWorld world) throws Exception {
    Duration brief = Duration.ofMillis(60);
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(8)) {
            if (member.rank() == 0) {
              SymmetricCells.assertTimeout(member, brief, -1, () -> memory.barrier(1, brief));
              SymmetricCells.assertTimeout(member, brief, 1, () -> memory.waitSignal(1, 2, brief));
              memory.putSignal(1, 2, Waiting.LONG);
              SymmetricCells.assertTimeout(member, brief, 1, () -> memory.putSignal(1, 2, brief));
            }
            member.meet();
            assertThat(member.group().failure()).isEmpty();
            // The barrier that timed out counts for nothing, and the second signal was not sent.
            for (int i = 0; i < 3; i++) {
              memory.barrier(1, Waiting.LONG);
            }
            if (member.rank() == 1) {
              memory.waitSignal(0, 2, Waiting.LONG);
              SymmetricCells.assertTimeout(member, brief, 0, () -> memory.waitSignal(0, 2, brief));
            }
          }
          member.assertUsable();
        });
  }

  /** Checks ranks, channels, ranges and alignment. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void argumentsOfMemoryAreChecked(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int size = member.size();
          try (SymmetricMemory memory = member.group().allocateSymmetric(20)) {
            for (int rank : new int[] {-1, size}) {
              SymmetricCells.assertBad(() -> memory.buffer(rank, DType.INT8, 0, 1), "rank " + rank);
              SymmetricCells.assertBad(
                  () -> memory.putSignal(rank, 0, Waiting.LONG), "rank " + rank);
              SymmetricCells.assertBad(
                  () -> memory.waitSignal(rank, 0, Waiting.LONG), "rank " + rank);
            }
            for (int channel : new int[] {-1, memory.channels()}) {
              SymmetricCells.assertBad(
                  () -> memory.barrier(channel, Waiting.LONG), "channel " + channel);
              SymmetricCells.assertBad(
                  () -> memory.putSignal(0, channel, Waiting.LONG), "channel " + channel);
              SymmetricCells.assertBad(
                  () -> memory.waitSignal(0, channel, Waiting.LONG), "channel " + channel);
            }
            SymmetricCells.assertBad(() -> memory.buffer(0, DType.INT32, 2, 1), "byteOffset 2");
            SymmetricCells.assertBad(() -> memory.buffer(0, DType.INT32, 0, -1), "negative");
            SymmetricCells.assertOutside(() -> memory.buffer(0, DType.INT32, -4, 1));
            SymmetricCells.assertOutside(() -> memory.buffer(0, DType.INT32, 0, 6));
            SymmetricCells.assertOutside(() -> memory.buffer(0, DType.INT32, 8, 2, 2));
            SymmetricCells.assertOutside(() -> memory.buffer(0, DType.INT8, 24, 0));
            SymmetricCells.assertOutside(() -> memory.buffer(0, DType.INT64, 0, 1L << 61));
            SymmetricCells.assertOutside(
                () -> memory.buffer(0, DType.INT64, 0, Long.MAX_VALUE, Long.MAX_VALUE));
            assertThat(memory.buffer(0, DType.INT32, 0, 5).numel()).isEqualTo(5);
            assertThat(memory.buffer(size - 1, DType.INT16, 8, 2, 3).shape()).containsExactly(2, 3);
            assertThat(memory.buffer(0, DType.INT8, 20, 0).numel()).isZero();
            member.meet();
          }
        });
  }

  /** Keeps several allocations apart, whichever of them is closed first. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void allocationsAreApart(ContractWorld world) throws Exception {
    world.run(
        member -> {
          List<SymmetricMemory> all = new ArrayList<>();
          for (int i = 0; i < 3; i++) {
            all.add(member.group().allocateSymmetric(8L * (1 + 600 * i)));
          }
          for (int i = 0; i < 3; i++) {
            SymmetricCells.write(member, all.get(i), member.next(), 600 * i, 10 * i + 1);
            all.get(i).barrier(0, Waiting.LONG);
          }
          for (int closed : new int[] {1, 0, 2}) {
            for (int i = 0; i < 3; i++) {
              if (all.get(i) != null) {
                assertThat(SymmetricCells.read(member, all.get(i), member.rank(), 600 * i, 1))
                    .containsExactly(10L * i + 1);
              }
            }
            all.get(closed).close();
            all.set(closed, null);
          }
          member.assertUsable();
        });
  }

  /** Closes one rank's view but not those of the others, and refuses later use of it. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void closedMemoryIsRefused(ContractWorld world) throws Exception {
    world.run(
        member -> {
          SymmetricMemory memory = member.group().allocateSymmetric(8);
          SymmetricCells.write(member, memory, member.next(), 0, 7);
          memory.barrier(0, Waiting.LONG);
          member.meet();
          if (member.rank() != 0) {
            member.meet();
            assertThat(SymmetricCells.read(member, memory, 0, 0, 1)).containsExactly(7L);
          }
          Tensor old = memory.buffer(member.next(), DType.INT64, 0, 1);
          memory.close();
          memory.close();
          if (world.subject().isOnHost()) {
            assertThatThrownBy(() -> world.subject().copyOut(old))
                .as("a view of before")
                .isInstanceOf(IllegalStateException.class);
          }
          List<Refusals.Call> calls =
              List.of(
                  () -> memory.buffer(0, DType.INT8, 0, 1),
                  () -> memory.barrier(0, Waiting.LONG),
                  () -> memory.putSignal(0, 0, Waiting.LONG),
                  () -> memory.waitSignal(0, 0, Waiting.LONG));
          for (Refusals.Call call : calls) {
            assertThatThrownBy(call::run)
                .isInstanceOf(GroupClosedException.class)
                .hasMessageContaining("rank " + member.rank());
          }
          if (member.rank() == 0) {
            member.meet();
          }
          member.assertUsable();
        });
  }

  /** Refuses impossible sizes before anything is sent. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void impossibleSizesAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          for (long size : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            refused.badArgument("byteSize", () -> group.allocateSymmetric(size));
          }
        });
  }

  /** Fails on every rank when the sizes differ. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY, minSize = 2)
  default void unequalSizesFailOnEveryRank(ContractWorld world) throws Exception {
    world.run(
        member -> {
          long size = member.rank() == member.size() - 1 ? 72 : 64;
          CollectiveException failure =
              CaughtFailures.expect(
                  member, CaughtFailures.SOON, () -> member.group().allocateSymmetric(size));
          assertThat(failure).isNotInstanceOf(CollectiveTimeoutException.class);
          assertThat(failure.opType()).isEqualTo(OpType.ALLOCATE_SYMMETRIC);
          Waiting.until("the failure", () -> member.group().failure().isPresent());
        });
  }

  /** Refuses, on every rank, a size that exceeds any machine's memory; the group stays usable. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void whatHasNoRoomIsRefusedOnEveryRank(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long size : new long[] {1L << 55, (1L << 62) / member.size()}) {
            assertThatThrownBy(() -> member.group().allocateSymmetric(size))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("rank " + member.rank())
                .hasMessageContaining(Long.toString(size));
          }
          assertThat(member.group().failure()).isEmpty();
          member.assertUsable();
          try (SymmetricMemory memory = member.group().allocateSymmetric(8)) {
            memory.barrier(0, Waiting.LONG);
          }
        });
  }

  /** Takes its turn among the collectives, and is counted and recorded as one of them. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY, needs = OpType.ALL_REDUCE)
  default void allocationTakesItsTurn(ContractWorld world) throws Exception {
    world.run(
        member -> {
          long before = member.group().sequenceNumber();
          List<TestTensor> tensors = new ArrayList<>();
          List<Work> works = new ArrayList<>();
          for (int i = 0; i < 5; i++) {
            TestTensor tensor = member.floats(i);
            tensors.add(tensor);
            works.add(member.startSum(tensor.view()));
          }
          try (SymmetricMemory memory = member.group().allocateSymmetric(8)) {
            if (member.capabilities().has(Feature.STREAM_ORDERED)) {
              works.forEach(Work::await);
            }
            assertThat(works).allSatisfy(work -> assertThat(work.isCompleted()).isTrue());
            for (int i = 0; i < 5; i++) {
              tensors.get(i).assertValues("all-reduce before", (double) i * member.size());
            }
            assertThat(member.group().sequenceNumber()).isEqualTo(before + 6);
            assertThat(member.group().diagnostics().flightRecord())
                .contains(OpType.ALLOCATE_SYMMETRIC.label());
            memory.barrier(0, Waiting.LONG);
            member.assertUsable();
          }
        });
  }

  /** Ends the waits of all ranks when the group is aborted. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY, minSize = 2)
  default void abortEndsWaits(ContractWorld world) throws Exception {
    CountDownLatch waiting = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          SymmetricMemory memory = member.group().allocateSymmetric(8);
          if (member.rank() == 0) {
            Waiting.open(waiting);
            member.group().abort("enough");
            return;
          }
          try (Calls calls = new Calls()) {
            Future<?> wait =
                calls.run(
                    () -> {
                      if (member.rank() == 1) {
                        memory.waitSignal(0, 1, Waiting.LONG);
                      } else {
                        memory.barrier(1, Waiting.LONG);
                      }
                    });
            Calls.assertBlocked(wait);
            waiting.countDown();
            long start = System.nanoTime();
            Calls.failed(wait, TuttiException.class)
                .isNotInstanceOf(CollectiveTimeoutException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(CaughtFailures.SOON);
          }
        });
  }

  /** Ends this rank's waits when it closes the memory or the group. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void closeEndsWaits(ContractWorld world) throws Exception {
    world.run(
        member -> {
          SymmetricMemory first = member.group().allocateSymmetric(8);
          SymmetricMemory second = member.group().allocateSymmetric(8);
          try (Calls calls = new Calls()) {
            Future<?> waitsInFirst =
                calls.run(() -> first.waitSignal(member.next(), 0, Waiting.LONG));
            Future<?> waitsInSecond =
                calls.run(() -> second.waitSignal(member.next(), 0, Waiting.LONG));
            Calls.assertBlocked(waitsInFirst);
            first.close();
            Calls.failed(waitsInFirst, GroupClosedException.class);
            Calls.assertBlocked(waitsInSecond);
            member.meet();
            member.group().close();
            // A peer that closes first is a failure of this rank's wait.
            Calls.failed(waitsInSecond, TuttiException.class)
                .isNotInstanceOf(CollectiveTimeoutException.class);
            assertThatThrownBy(() -> second.buffer(0, DType.INT8, 0, 1))
                .isInstanceOf(GroupClosedException.class);
          }
        });
  }

  /** Copes with any mix of barriers and signals on several channels at once. */
  @ContractTest(features = Feature.SYMMETRIC_MEMORY)
  default void randomConcurrentUse(ContractWorld world) throws Exception {
    int threads = 3;
    int steps = world.isLarge() ? 10 : 80;
    world.run(
        member -> {
          try (SymmetricMemory memory = member.group().allocateSymmetric(8L * threads);
              Calls calls = new Calls()) {
            calls.all(
                threads,
                channel -> {
                  mix(member, memory, channel, steps);
                  return channel;
                });
            assertThat(member.group().failure()).isEmpty();
            member.meet();
          }
        });
  }

  private static void mix(Member member, SymmetricMemory memory, int channel, int steps) {
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(channel + 1L);
    int size = member.size();
    for (int step = 1; step <= steps; step++) {
      int hop = random.nextInt(size);
      int to = (member.rank() + hop) % size;
      int from = (member.rank() + size - hop) % size;
      boolean signals = random.nextBoolean();
      SymmetricCells.write(member, memory, to, channel, 1000L * step + member.rank());
      if (signals) {
        memory.putSignal(to, channel, Waiting.LONG);
        memory.waitSignal(from, channel, Waiting.LONG);
      } else {
        memory.barrier(channel, Waiting.LONG);
      }
      long[] read = SymmetricCells.read(member, memory, member.rank(), channel, 1);
      assertThat(read).containsExactly(1000L * step + from);
      memory.barrier(channel, Waiting.LONG);
    }
  }
}
