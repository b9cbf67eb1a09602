package dev.tutti.gloo.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp.Kind;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.HeapMemory;
import dev.tutti.gloo.transport.TestOperation;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests which path two ranks take, and what they do when one gives up. */
@Timeout(300)
class DirectTest {
  @BeforeAll
  static void isThere() {
    assumeThat(SharedHeap.ofProcess()).as("this system gives out such memory").isPresent();
  }

  private static final int COUNT = 100_000;
  private static final long BYTES = 4L * COUNT;

  private interface Body<T> {
    T run(ShmChannel channel, HostReads reads, Operation op) throws Exception;
  }

  private static <T> List<T> onBoth(boolean secondAllows, Body<T> body) throws Exception {
    ShmLayout layout = ShmLayout.within(2, 1 << 20);
    try (ShmFile memory = ShmFile.ofOne(layout.bytes(), Time.SYSTEM)) {
      List<FutureTask<T>> tasks = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        int own = rank;
        ShmFuzzTest.Alone endpoint =
            new ShmFuzzTest.Alone() {
              @Override
              public int rank() {
                return own;
              }
            };
        ShmChannel channel = new ShmChannel(memory, layout, endpoint, 0);
        HostReads reads = new HostReads(channel, true, own == 0 || secondAllows);
        tasks.add(
            new FutureTask<>(
                () -> {
                  try (reads) {
                    return body.run(channel, reads, new TestOperation(Duration.ofSeconds(150)));
                  }
                }));
      }
      tasks.forEach(task -> Thread.ofPlatform().daemon().start(task));
      List<T> results = new ArrayList<>();
      for (FutureTask<T> task : tasks) {
        results.add(task.get(200, TimeUnit.SECONDS));
      }
      return results;
    }
  }

  private static MemorySegment seen(float value) {
    MemorySegment memory = HeapMemory.allocate(Arena.ofAuto(), BYTES);
    memory.setAtIndex(ValueLayout.JAVA_FLOAT, COUNT - 1, value);
    return memory;
  }

  private static float last(MemorySegment memory) {
    return memory.getAtIndex(ValueLayout.JAVA_FLOAT, COUNT - 1);
  }

  @Test
  void tensorsThatBothSeeAreReducedWhereTheyAre() throws Exception {
    List<Float> sums =
        onBoth(
            true,
            (channel, reads, op) -> {
              MemorySegment tensor = seen(channel.rank + 1);
              channel.enter(1);
              DirectAllReduce allReduce = new DirectAllReduce(channel, reads);
              assertThat(allReduce.run(op, tensor, BYTES, DType.FLOAT32, Kind.SUM)).isTrue();
              return last(tensor);
            });
    assertThat(sums).containsExactly(3f, 3f);
  }

  @Test
  void aTensorElsewhereIsLeftAlone() throws Exception {
    List<Float> values =
        onBoth(
            true,
            (channel, reads, op) -> {
              MemorySegment tensor =
                  channel.rank == 0 ? seen(5) : Arena.ofAuto().allocate(BYTES, 64);
              channel.enter(1);
              DirectAllReduce allReduce = new DirectAllReduce(channel, reads);
              assertThat(allReduce.run(op, tensor, BYTES, DType.FLOAT32, Kind.SUM)).isFalse();
              return last(tensor);
            });
    assertThat(values).containsExactly(5f, 0f);
  }

  @Test
  void aRankThatDoesNotAllowItIsEnoughForAll() throws Exception {
    List<Boolean> mapped =
        onBoth(
            false,
            (channel, reads, op) -> {
              channel.enter(1);
              return reads.areMapped(op);
            });
    assertThat(mapped).containsExactly(false, false);
  }

  @Test
  void aBroadcastIsReadFromTheRoot() throws Exception {
    List<Float> values =
        onBoth(
            true,
            (channel, reads, op) -> {
              MemorySegment tensor =
                  channel.rank == 1 ? seen(7) : Arena.ofAuto().allocate(BYTES, 64);
              channel.enter(1);
              assertThat(new DirectBroadcast(channel, reads).run(op, tensor, BYTES, 1)).isTrue();
              return last(tensor);
            });
    assertThat(values).containsExactly(7f, 7f);
  }

  /** Rank 0 gives up before rank 1 reads, so rank 1 does not read the lent data. */
  @Test
  void whatARankTookBackIsNotTaken() throws Exception {
    onBoth(
        true,
        (channel, reads, op) -> {
          MemorySegment tensor = seen(1);
          channel.enter(1);
          assertThat(reads.areMapped(op)).isTrue();
          MemorySegment[] slots = channel.beginSlots();
          slots[channel.rank].set(ValueLayout.JAVA_LONG, 0, tensor.address());
          channel.publishSlot();
          channel.awaitSlots(op);
          if (channel.rank == 0) {
            reads.revoke();
            channel.agree(op);
          } else {
            channel.agree(op);
            long theirs = slots[0].get(ValueLayout.JAVA_LONG, 0);
            assertThatThrownBy(() -> reads.copy(op, 0, theirs, tensor, 0, BYTES))
                .isInstanceOf(PeerLostException.class)
                .hasMessageContaining("can no longer read the memory of rank 0");
            assertThatThrownBy(() -> reads.check(0)).isInstanceOf(PeerLostException.class);
          }
          return channel.rank;
        });
  }

  /** Rank 1 does not join the all-reduce; later it finds that rank 0 has taken its tensor back. */
  @Test
  void aRankThatGivesUpTakesItsTensorBack() throws Exception {
    CountDownLatch gaveUp = new CountDownLatch(1);
    onBoth(
        true,
        (channel, reads, op) -> {
          channel.enter(1);
          assertThat(reads.areMapped(op)).isTrue();
          reads.check(1 - channel.rank);
          // Rank 0 must not give up before rank 1 has checked.
          channel.agree(op);
          if (channel.rank == 0) {
            DirectAllReduce allReduce = new DirectAllReduce(channel, reads);
            TestOperation brief = new TestOperation(Duration.ofMillis(100));
            assertThatThrownBy(() -> allReduce.run(brief, seen(1), BYTES, DType.FLOAT32, Kind.SUM))
                .isInstanceOf(TimeoutException.class);
            gaveUp.countDown();
          } else {
            assertThat(gaveUp.await(150, TimeUnit.SECONDS)).isTrue();
            assertThatThrownBy(() -> reads.check(0)).isInstanceOf(PeerLostException.class);
          }
          return channel.rank;
        });
  }

  /** Rank 1 frees the root's tensor after the root has announced it, and then reads it. */
  @Test
  void aTensorFreedMeanwhileIsReadAsItWas() throws Exception {
    Arena arena = Arena.ofShared();
    List<Float> values =
        onBoth(
            true,
            (channel, reads, op) -> {
              channel.enter(1);
              assertThat(reads.areMapped(op)).isTrue();
              if (channel.rank == 0) {
                MemorySegment tensor = HeapMemory.allocate(arena, BYTES);
                tensor.setAtIndex(ValueLayout.JAVA_FLOAT, COUNT - 1, 9);
                assertThat(new DirectBroadcast(channel, reads).run(op, tensor, BYTES, 0)).isTrue();
                return 9f;
              }
              MemorySegment[] slots = channel.beginSlots();
              slots[1].set(ValueLayout.JAVA_LONG, 0, 0);
              channel.publishSlot();
              channel.awaitSlots(op);
              arena.close();
              MemorySegment read = seen(0);
              reads.copy(op, 0, slots[0].get(ValueLayout.JAVA_LONG, 0), read, 0, BYTES);
              channel.agree(op);
              return last(read);
            });
    assertThat(values).containsExactly(9f, 9f);
  }

  @Test
  void aTensorFreedBeforeIsRefused() throws Exception {
    MemorySegment freed;
    try (Arena arena = Arena.ofShared()) {
      freed = HeapMemory.allocate(arena, BYTES);
    }
    onBoth(
        true,
        (channel, reads, op) -> {
          channel.enter(1);
          assertThat(reads.areMapped(op)).isTrue();
          assertThatThrownBy(
                  () -> new DirectBroadcast(channel, reads).run(op, freed, BYTES, channel.rank))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("Already closed");
          return channel.rank;
        });
  }

  @Test
  void anAddressOutsideTheHeapIsRefused() throws Exception {
    onBoth(
        true,
        (channel, reads, op) -> {
          channel.enter(1);
          assertThat(reads.areMapped(op)).isTrue();
          SharedHeap heap = SharedHeap.ofProcess().orElseThrow();
          long end = heap.address() + heap.byteSize();
          for (long address : new long[] {heap.address() - 1, end - BYTES + 1, end, 0, -1}) {
            assertThatThrownBy(() -> reads.view(1 - channel.rank, address, BYTES))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not in its memory");
          }
          channel.agree(op);
          return channel.rank;
        });
  }
}
