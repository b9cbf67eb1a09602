package dev.tutti.cpu.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Isolated("counts what all tests of this JVM allocate")
@Timeout(300)
class SharedHeapTest {
  private static final long LARGE = 8 << 20;

  /** That of large tensors, to which garbage of other tests returns at any time. */
  private SharedHeap ofProcess;

  private SharedHeap heap;

  @BeforeEach
  void isThere() throws IOException {
    assumeThat(SharedHeap.ofProcess()).as("this system gives out such memory").isPresent();
    ofProcess = SharedHeap.ofProcess().orElseThrow();
    heap = SharedHeap.create();
  }

  private static void until(String what, BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(240);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - deadline).as(what).isNegative();
      System.gc();
      LockSupport.parkNanos(10_000_000); // the collector's threads give the memory back
    }
  }

  /** Returns how much of the heap is in memory, in kilobytes. */
  private long residentKilobytes() throws IOException {
    List<String> lines = Files.readAllLines(Path.of("/proc/self/smaps"));
    String start = Long.toHexString(heap.address()) + "-";
    int mapping =
        IntStream.range(0, lines.size())
            .filter(i -> lines.get(i).startsWith(start))
            .findFirst()
            .orElseThrow();
    String resident =
        lines.stream()
            .skip(mapping)
            .filter(line -> line.startsWith("Rss:"))
            .findFirst()
            .orElseThrow();
    return Long.parseLong(resident.replaceAll("\\D", ""));
  }

  private MemorySegment take(Arena arena, long bytes) {
    return Objects.requireNonNull(heap.takeBounded(arena, bytes), "no room");
  }

  @Test
  void largeTensorsAreInIt() {
    try (Arena shared = Arena.ofShared();
        Arena confined = Arena.ofConfined()) {
      int large = (int) SharedHeap.LEAST_BYTES;
      assertThat(SharedHeap.has(Tensor.allocate(DType.UINT8, large).segment())).isTrue();
      assertThat(SharedHeap.has(Tensor.allocate(shared, DType.UINT8, large).segment())).isTrue();
      assertThat(SharedHeap.has(Tensor.allocate(confined, DType.UINT8, large).segment())).isTrue();
      assertThat(SharedHeap.has(Tensor.allocate(DType.UINT8, large - 1).segment())).isFalse();
      assertThat(SharedHeap.has(Arena.ofAuto().allocate(large))).isFalse();
      assertThat(SharedHeap.has(MemorySegment.ofArray(new byte[large]))).isFalse();
    }
  }

  @Test
  void anArenaOfTheProgramIsHeeded() {
    MemorySegment own = Arena.ofAuto().allocate(LARGE, 64);
    Arena arena =
        new Arena() {
          @Override
          public MemorySegment allocate(long bytes, long alignment) {
            return own.asSlice(0, bytes);
          }

          @Override
          public MemorySegment.Scope scope() {
            return own.scope();
          }

          @Override
          public void close() {}
        };
    assertThat(Tensor.allocate(arena, DType.UINT8, LARGE).segment().address())
        .isEqualTo(own.address());
  }

  @Test
  void whatIsFreedWhileItIsLentStaysAsItIs() {
    int loan = heap.beginLoan();
    long address;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = take(arena, LARGE);
      memory.fill((byte) 7);
      address = memory.address();
    }
    MemorySegment freed = MemorySegment.ofAddress(address).reinterpret(LARGE);
    try (Arena arena = Arena.ofConfined()) {
      assertThat(take(arena, LARGE).address()).isNotEqualTo(address);
      assertThat(heap.used()).isEqualTo(2 * LARGE);
      assertThat(freed.get(ValueLayout.JAVA_BYTE, LARGE - 1)).isEqualTo((byte) 7);
      heap.endLoan(loan);
      assertThat(freed.get(ValueLayout.JAVA_BYTE, LARGE - 1)).isZero();
      assertThat(heap.used()).isEqualTo(LARGE);
    }
  }

  @Test
  void memoryIsZeroAgainAndBelongsToItsArena() {
    MemorySegment memory;
    try (Arena arena = Arena.ofConfined()) {
      memory = take(arena, LARGE + 1);
      assertThat(memory.byteSize()).isEqualTo(LARGE + 1);
      assertThat(heap.used()).isEqualTo(LARGE + 4096);
      memory.fill((byte) 7);
    }
    assertThat(heap.used()).isZero();
    assertThatThrownBy(() -> memory.get(ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment again = take(arena, LARGE + 1);
      assertThat(again.address()).isEqualTo(memory.address());
      assertThat(again.mismatch(MemorySegment.ofArray(new byte[(int) LARGE + 1]))).isEqualTo(-1);
    }
  }

  @Test
  void whatIsFreedGoesBackToTheSystem() throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      take(arena, 64 << 20).fill((byte) 1);
      assertThat(residentKilobytes()).isBetween(64L << 10, (64L << 10) + 100);
    }
    assertThat(residentKilobytes()).isLessThan(100);
  }

  /**
   * Frees 72 MiB in pieces, of which 32 MiB may stay as before, and finds the memory that was kept
   * zeroed.
   */
  @Test
  void noMoreThanSomeOfWhatIsFreedIsKept() throws IOException {
    MemorySegment zeros = MemorySegment.ofArray(new byte[12 << 20]);
    for (int round = 0; round < 3; round++) {
      try (Arena arena = Arena.ofConfined()) {
        for (int i = 0; i < 6; i++) {
          MemorySegment memory = take(arena, 12 << 20);
          assertThat(memory.mismatch(zeros)).isEqualTo(-1);
          memory.fill((byte) 1);
        }
        assertThat(residentKilobytes()).isBetween(72L << 10, (72L << 10) + 100);
      }
      assertThat(residentKilobytes()).isLessThan((32 << 10) + 100);
    }
  }

  @Test
  void tensorsThatNobodyHasAreFreed() {
    long before = ofProcess.used();
    for (int i = 0; i < 100; i++) {
      Tensor.allocate(DType.UINT8, LARGE).setLong(i, 1);
    }
    until("the tensors are freed", () -> ofProcess.used() <= before);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, Long.MIN_VALUE, Long.MAX_VALUE, Long.MAX_VALUE - 65_535, 1L << 60})
  void nonsenseIsNotGivenOut(long bytes) {
    assertThat(heap.allocate(bytes)).isEmpty();
    assertThat(heap.used()).isZero();
  }

  @Test
  void hugeTensorsFailAsTheJdkSays() {
    long before = ofProcess.used();
    try (Arena arena = Arena.ofConfined()) {
      assertThatThrownBy(() -> Tensor.allocate(arena, DType.UINT8, Long.MAX_VALUE - 100))
          .isInstanceOfAny(OutOfMemoryError.class, IllegalArgumentException.class);
    }
    assertThat(ofProcess.used()).isLessThanOrEqualTo(before);
  }

  @Test
  void noMoreThanHalfOfTheJdksIsGivenOut() throws IOException {
    long most = HeapBounds.directMemory() / 2;
    try (Arena arena = Arena.ofConfined()) {
      assertThat(heap.takeBounded(arena, most / 4 * 3)).isNotNull();
      assertThat(heap.takeBounded(arena, most / 4 + (8 << 20))).isNull();
      assertThat(heap.takeBounded(arena, most + 1)).isNull();
      assertThat(heap.allocate(8)).as("a number is given out also then").isPresent();
    }
  }

  /** Tensors that are no longer in use are collected when there is no room. */
  @Test
  void garbageMakesRoom() throws IOException {
    long most = HeapBounds.directMemory() / 2;
    for (int i = 0; i < 12; i++) {
      long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(4);
      while (heap.takeOrCollect(Arena.ofAuto(), most / 4) == null) {
        assertThat(System.nanoTime() - deadline).as("allocation " + i).isNegative();
        LockSupport.parkNanos(1_000_000);
      }
    }
    until("all is freed", () -> heap.used() == 0);
  }

  @Test
  void memoryThatWasFreedMeanwhileIsFound() throws IOException {
    Arena tenant = Arena.ofShared();
    take(tenant, HeapBounds.directMemory() / 2);
    Arena given = new FullArena(tenant);
    assertThat(heap.takeBounded(given, LARGE)).isNull();
    MemorySegment found = SharedHeap.allocate(heap, given, LARGE, 64);
    assertThat(found.address()).isBetween(heap.address(), heap.address() + heap.byteSize());
    assertThat(found.byteSize()).isEqualTo(LARGE);
    assertThat(heap.used()).isEqualTo(LARGE);
  }

  @Test
  void theErrorOfTheJdkIsThrownIfNothingWasFreedMeanwhile() throws IOException {
    try (Arena tenant = Arena.ofShared()) {
      take(tenant, HeapBounds.directMemory() / 2);
      Arena given = new FullArena(Arena.ofShared());
      assertThatThrownBy(() -> SharedHeap.allocate(heap, given, LARGE, 64))
          .isInstanceOf(OutOfMemoryError.class)
          .hasMessage("the JDK has no room");
    }
  }

  /** An arena that has no room, and closes another one before it says so. */
  private record FullArena(Arena tenant) implements Arena {
    @Override
    public MemorySegment allocate(long bytes, long alignment) {
      tenant.close();
      throw new OutOfMemoryError("the JDK has no room");
    }

    @Override
    public MemorySegment.Scope scope() {
      return Arena.global().scope();
    }

    @Override
    public void close() {}
  }

  private static Process start(Class<?> main) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx128m", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.add(main.getName());
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  private static BufferedReader reader(Process child) {
    return new BufferedReader(
        new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8));
  }

  @Test
  void anInterruptedThreadMakesAndMapsIt() throws Exception {
    Thread.currentThread().interrupt();
    try {
      HeapMapping own = heap.map(1, heap.descriptor(), heap.number(), heap.byteSize());
      assertThat(own.memory().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(heap.number());
      own.close();
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "'', 77",
    "java -XX:MaxDirectMemorySize=5, 5",
    "-XX:MaxDirectMemorySize=5k -XX:MaxDirectMemorySize=3M x, 3145728",
    "-XX:MaxDirectMemorySize=2g, 2147483648",
    "-XX:MaxDirectMemorySize=0, 77",
    "-XX:MaxDirectMemorySize=many, 77"
  })
  void theLastBoundCounts(String words, long expected) {
    assertThat(HeapBounds.directMemory(words, 77)).isEqualTo(expected);
  }

  /** Threads allocate, mark, check and free memory of many sizes. */
  @Test
  void placesOverlapNoOther() throws Exception {
    long before = ofProcess.used();
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (int thread = 1; thread <= 4; thread++) {
      int seed = thread;
      tasks.add(
          new FutureTask<>(
              () -> {
                churn(new Random(seed), seed);
                return null;
              }));
    }
    tasks.forEach(task -> Thread.ofPlatform().daemon().start(task));
    for (FutureTask<Void> task : tasks) {
      task.get(4, TimeUnit.MINUTES);
    }
    assertThat(ofProcess.used()).isLessThanOrEqualTo(before);
  }

  private static void churn(Random random, int mark) {
    List<Arena> arenas = new ArrayList<>();
    List<MemorySegment> places = new ArrayList<>();
    for (int round = 0; round < 2000; round++) {
      if (places.size() < 20 && random.nextBoolean()) {
        Arena arena = Arena.ofConfined();
        MemorySegment memory =
            SharedHeap.allocate(arena, SharedHeap.LEAST_BYTES + random.nextInt(400_000), 64);
        for (long at = 0; at < memory.byteSize(); at += 4096) {
          assertThat(memory.get(ValueLayout.JAVA_BYTE, at)).isZero();
          memory.set(ValueLayout.JAVA_BYTE, at, (byte) mark);
        }
        arenas.add(arena);
        places.add(memory);
      } else if (!places.isEmpty()) {
        int index = random.nextInt(places.size());
        MemorySegment memory = places.remove(index);
        for (long at = 0; at < memory.byteSize(); at += 4096) {
          assertThat(memory.get(ValueLayout.JAVA_BYTE, at)).isEqualTo((byte) mark);
        }
        arenas.remove(index).close();
      }
    }
    arenas.forEach(Arena::close);
  }

  @Test
  void anotherProcessMapsIt() throws Exception {
    Process child = start(SharedHeapMain.class);
    try (BufferedReader output = reader(child)) {
      String line = output.readLine();
      String[] said = line.split(" ");
      assertThat(said).as(line).hasSize(4);
      int descriptor = Integer.parseInt(said[0]);
      long number = Long.parseLong(said[1]);
      long size = Long.parseLong(said[2]);
      long place = Long.parseLong(said[3]);
      HeapMapping mapping = heap.map(child.pid(), descriptor, number, size);
      HeapMapping again = heap.map(child.pid(), descriptor, number, size);
      assertThat(again).isSameAs(mapping);
      MemorySegment theirs = mapping.memory();
      assertThat(theirs.get(ValueLayout.JAVA_INT, place + 4 * 99_999)).isEqualTo(4711);

      assertThatThrownBy(() -> heap.map(child.pid(), descriptor, number + 1, size))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("belongs to another process");
      assertThatThrownBy(() -> heap.map(child.pid(), descriptor, number, size + 1))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("shares " + size + " bytes, not " + (size + 1));
      assertThatThrownBy(() -> heap.map(child.pid(), 0, number + 1, size))
          .as("its input, which would be waited for")
          .isInstanceOf(IOException.class)
          .hasMessageContaining("pipe");

      child.getOutputStream().write('x');
      child.getOutputStream().flush();
      assertThat(output.readLine()).isEqualTo((int) 'x' + " 4711");
      assertThat(child.waitFor(4, TimeUnit.MINUTES)).isTrue();
      assertThat(theirs.get(ValueLayout.JAVA_INT, place + 4 * 99_999))
          .as("what is mapped outlives its process")
          .isEqualTo(4711);
      mapping.close();
      assertThat(theirs.scope().isAlive()).isTrue();
      again.close();
      assertThat(theirs.scope().isAlive()).isFalse();
      assertThatThrownBy(() -> heap.map(child.pid(), descriptor, number, size))
          .isInstanceOf(IOException.class);
    } finally {
      child.destroyForcibly();
    }
  }
}
