package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.shared.Until;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests all-reduce in symmetric memory, and where that memory comes from. */
@Timeout(300)
class SymmetricMemoryTest {
  private static final Duration LONG = GlooWorld.TIMEOUT;

  private static void run(int size, Settings settings, GlooWorld.Call body) throws Exception {
    GlooWorld.run(
        size,
        settings,
        group -> {
          body.run(group);
          return null;
        });
  }

  /** Returns how many all-reduces have run in symmetric memory, without staging. */
  private static long inPlace(ProcessGroup group) {
    return group.diagnostics().usageByPath().getOrDefault("gloo/shared/symmetric", 0L);
  }

  private static Settings littleMemory() {
    return GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), "512K");
  }

  private static ReduceOp op(ReduceOp.Kind kind) {
    return switch (kind) {
      case SUM -> ReduceOp.SUM;
      case AVG -> ReduceOp.AVG;
      case PRODUCT -> ReduceOp.PRODUCT;
      case MIN -> ReduceOp.MIN;
      case MAX -> ReduceOp.MAX;
      case BAND -> ReduceOp.BAND;
      case BOR -> ReduceOp.BOR;
      case BXOR -> ReduceOp.BXOR;
      case PREMUL_SUM -> ReduceOp.premulSum(0.75);
    };
  }

  /** Fills a tensor with bits that are fractions, and not NaN, in the types that have them. */
  private static void fill(Tensor tensor, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    if (tensor.dtype().isFloatingPoint() || tensor.dtype().isComplex()) {
      Tensor reals = tensor.viewAsReal();
      for (long i = 0; i < reals.numel(); i++) {
        reals.setDouble(i, (random.nextInt(33) - 16) / 8.0);
      }
    } else {
      for (long i = 0; i < tensor.byteSize(); i++) {
        byte bits = (byte) (tensor.dtype() == DType.BOOL ? random.nextInt(2) : random.nextInt());
        tensor.segment().set(ValueLayout.JAVA_BYTE, i, bits);
      }
    }
  }

  private static byte[] bits(Tensor tensor) {
    return tensor.segment().toArray(ValueLayout.JAVA_BYTE);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void resultsAreThoseOfOrdinaryTensors(int size) throws Exception {
    GlooProvider provider = new GlooProvider();
    run(
        size,
        littleMemory(),
        group -> {
          SymmetricMemory memory = group.allocateSymmetric(400_001);
          int direct = 0;
          for (DType dtype : DType.values()) {
            for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
              if (!provider.capabilities("cpu").canReduce(dtype, op(kind))) {
                continue;
              }
              long offset = 3L * dtype.byteSize();
              long count = (8200L + 997L * direct) / dtype.byteSize();
              Tensor placed = memory.buffer(group.rank(), dtype, offset, count);
              fill(placed, 100L * direct + group.rank());
              Tensor ordinary = placed.copy();
              Tensor whole = memory.buffer(group.rank(), DType.INT8, 0, 400_001);
              byte[] around = bits(whole);
              group.allReduce(placed, op(kind));
              assertThat(inPlace(group)).isEqualTo(++direct);
              group.allReduce(ordinary, op(kind));
              assertThat(inPlace(group)).isEqualTo(direct);
              byte[] expected = bits(ordinary);
              assertThat(bits(placed)).as("%s %s", kind, dtype).isEqualTo(expected);
              System.arraycopy(expected, 0, around, (int) offset, expected.length);
              assertThat(bits(whole)).as("around %s %s", kind, dtype).isEqualTo(around);
              group.barrier();
            }
          }
          assertThat(direct).isGreaterThan(50);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void sumsOfAnySizeAreRight(int size) throws Exception {
    run(
        size,
        littleMemory(),
        group -> {
          SymmetricMemory memory = group.allocateSymmetric(4L * 700_001);
          for (long count : new long[] {2048, 2049, 4095, 16_384 * size + 1, 300_007, 700_000}) {
            Tensor tensor = memory.buffer(group.rank(), DType.INT32, 4, count);
            for (int turn = 0; turn < 3; turn++) {
              for (long i = 0; i < count; i++) {
                tensor.segment().setAtIndex(ValueLayout.JAVA_INT, i, (int) i + turn + group.rank());
              }
              group.allReduce(tensor);
              for (long i = 0; i < count; i++) {
                int sum = size * ((int) i + turn) + size * (size - 1) / 2;
                if (tensor.segment().getAtIndex(ValueLayout.JAVA_INT, i) != sum) {
                  assertThat(tensor.getLong(i)).as("element %d of %d", i, count).isEqualTo(sum);
                }
              }
            }
          }
          // 2048 elements fit through the slots.
          assertThat(inPlace(group)).isEqualTo(15);
        });
  }

  @Test
  void ranksMayDisagreeAboutWhereTheirTensorsAre() throws Exception {
    int count = 5000;
    run(
        3,
        littleMemory(),
        group -> {
          int rank = group.rank();
          SymmetricMemory first = group.allocateSymmetric(8L * count);
          SymmetricMemory second = group.allocateSymmetric(8L * count);
          Tensor ordinary = Tensor.allocate(DType.FLOAT32, count);
          Tensor placed = first.buffer(rank, DType.FLOAT32, 0, count);
          Tensor shifted = first.buffer(rank, DType.FLOAT32, 4, count);
          Tensor elsewhere = second.buffer(rank, DType.FLOAT32, 0, count);
          assertSum(group, placed);
          assertThat(inPlace(group)).isEqualTo(1);
          assertSum(group, rank == 0 ? placed : ordinary);
          assertSum(group, rank == 1 ? ordinary : placed);
          assertSum(group, rank == 2 ? shifted : placed);
          assertSum(group, rank == 0 ? elsewhere : placed);
          assertSum(group, ordinary);
          assertThat(inPlace(group)).isEqualTo(1);
          assertSum(group, elsewhere);
          assertSum(group, shifted);
          assertThat(inPlace(group)).isEqualTo(3);
          if (rank == 1) {
            first.close();
          }
          assertSum(group, rank == 1 ? ordinary : placed);
          assertSum(group, elsewhere);
          assertThat(inPlace(group)).isEqualTo(4);
        });
  }

  private static void assertSum(ProcessGroup group, Tensor tensor) {
    tensor.fill(group.rank() + 1);
    group.allReduce(tensor);
    assertThat(tensor.toFloatArray()).containsOnly(group.size() * (group.size() + 1) / 2f);
  }

  @Test
  void aPeersBufferCanBeReducedByItsViewers() throws Exception {
    run(
        2,
        littleMemory(),
        group -> {
          SymmetricMemory memory = group.allocateSymmetric(40_000);
          int peer = 1 - group.rank();
          Tensor mine = memory.buffer(group.rank(), DType.FLOAT32, 0, 10_000);
          Tensor theirs = memory.buffer(peer, DType.FLOAT32, 0, 10_000);
          mine.fill(group.rank() + 1);
          group.barrier();
          group.allReduce(theirs);
          assertThat(inPlace(group)).isZero();
          group.barrier();
          assertThat(mine.toFloatArray()).containsOnly(3f);
        });
  }

  private static Settings in(Path directory) {
    return GlooWorld.settings(
        GlooProvider.SHARED_DIRECTORY.name(),
        directory.toString(),
        GlooProvider.SHARED_BYTES.name(),
        "1M");
  }

  private static List<Path> files(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.toList();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void leavesNoFileAndNoMapping(int size, @TempDir Path directory) throws Exception {
    Path maps = Path.of("/proc/self/maps");
    run(
        size,
        in(directory),
        group -> {
          SymmetricMemory closed = group.allocateSymmetric(100_000);
          group.allocateSymmetric(100_000).barrier(0, LONG);
          group.barrier();
          assertThat(files(directory)).isEmpty();
          assertThat(Files.readString(maps)).contains(directory + "/tutti-");
          group.barrier();
          closed.close();
        });
    assertThat(files(directory)).isEmpty();
    assertThat(Files.readString(maps)).doesNotContain(directory.toString());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void noRoomIsRefusedOnAllRanks(int size, @TempDir Path directory) throws Exception {
    Path shared = Files.createDirectory(directory.resolve("shared"));
    run(
        size,
        in(shared),
        group -> {
          assertThatThrownBy(() -> group.allocateSymmetric(1L << 50))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("no room for")
              .hasMessageContaining(shared.toString());
          group.barrier();
          assertThat(files(shared)).isEmpty();
          group.barrier();
          if (group.rank() == 0) {
            Files.delete(shared);
          }
          group.barrier();
          assertThatThrownBy(() -> group.allocateSymmetric(64))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("rank 0: java.nio.file.NoSuchFileException");
          group.barrier();
          if (group.rank() == 0) {
            Files.createDirectory(shared);
          }
          group.barrier();
          try (SymmetricMemory memory = group.allocateSymmetric(64)) {
            memory.barrier(0, LONG);
          }
          assertThat(group.failure()).isEmpty();
        });
    assertThat(files(shared)).isEmpty();
  }

  /** Returns once a thread has arrived at a barrier and waits for the others. */
  private static void awaitWaitInBarrier(Thread thread) {
    Until.holds(() -> waitsInBarrier(thread));
  }

  private static boolean waitsInBarrier(Thread thread) {
    StackTraceElement[] frames = thread.getStackTrace();
    return Stream.of(frames).anyMatch(frame -> frame.getMethodName().equals("barrier"))
        && Stream.of(frames)
            .anyMatch(
                frame ->
                    frame.getClassName().equals(WaitStrategy.class.getName())
                        && frame.getMethodName().equals("rest"));
  }

  @Test
  void aBarrierNamesTheRankThatDidNotComeAndNotTheOneThatGaveUp() throws Exception {
    CompletableFuture<Thread> entering = new CompletableFuture<>();
    CountDownLatch done = new CountDownLatch(2);
    run(
        3,
        littleMemory(),
        group -> {
          SymmetricMemory memory = group.allocateSymmetric(64);
          memory.barrier(3, LONG);
          if (group.rank() == 2) {
            assertThat(done.await(LONG.toSeconds(), TimeUnit.SECONDS)).isTrue();
            return;
          }
          if (group.rank() == 0) {
            entering.complete(Thread.currentThread());
          } else {
            awaitWaitInBarrier(entering.get(LONG.toSeconds(), TimeUnit.SECONDS));
          }
          Duration limit = group.rank() == 0 ? LONG : Duration.ofMillis(300);
          CollectiveException failure =
              catchThrowableOfType(CollectiveException.class, () -> memory.barrier(3, limit));
          assertThat(failure.failedRank()).hasValue(2);
          assertThat(failure)
              .hasMessageContaining("barrier on channel 3 of symmetric memory")
              .hasMessageContaining("missing ranks 2")
              .hasMessageContaining(group.rank() == 0 ? "rank 1 closed its group" : "in time")
              .message()
              .doesNotContain("unknown");
          group.close();
          done.countDown();
        });
  }

  @Test
  void aRankThatMaySpinForLongStillSeesThatItsPeerLeft() throws Exception {
    run(
        2,
        littleMemory().with(GlooProvider.SPIN, "30m"),
        group -> {
          SymmetricMemory memory = group.allocateSymmetric(64);
          memory.barrier(0, LONG);
          if (group.rank() == 0) {
            CollectiveException failure =
                catchThrowableOfType(
                    CollectiveException.class, () -> memory.barrier(0, Duration.ofHours(1)));
            assertThat(failure.failedRank()).hasValue(1);
            assertThat(failure).hasMessageContaining("missing ranks 1");
          }
        });
  }

  /** Once no rank waits, a rank that gave up counts as missing, just like one that never came. */
  @Test
  void aBarrierNamesRanksThatGaveItUpBefore() throws Exception {
    CountDownLatch[] gaveUp = {new CountDownLatch(1), new CountDownLatch(1)};
    run(
        2,
        littleMemory(),
        group -> {
          int rank = group.rank();
          SymmetricMemory memory = group.allocateSymmetric(64);
          memory.barrier(5, LONG);
          if (rank == 1) {
            assertThat(gaveUp[0].await(LONG.toSeconds(), TimeUnit.SECONDS)).isTrue();
          }
          CollectiveException failure =
              catchThrowableOfType(
                  CollectiveException.class, () -> memory.barrier(5, Duration.ofMillis(50)));
          assertThat(failure)
              .isInstanceOf(CollectiveTimeoutException.class)
              .hasMessageContaining("missing ranks " + (1 - rank));
          assertThat(failure.failedRank()).hasValue(1 - rank);
          gaveUp[rank].countDown();
          assertThat(gaveUp[1].await(LONG.toSeconds(), TimeUnit.SECONDS)).isTrue();
          memory.barrier(5, LONG);
        });
  }

  @Test
  void ranksOnSocketsAreToldWhyThereIsNone() throws Exception {
    GlooWorld.run(
        2,
        GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), "0"),
        group -> {
          assertThat(group.capabilities().has(Capabilities.Feature.SYMMETRIC_MEMORY)).isFalse();
          assertThatThrownBy(() -> group.allocateSymmetric(64))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("do not share memory");
          group.barrier();
          return null;
        });
  }
}
