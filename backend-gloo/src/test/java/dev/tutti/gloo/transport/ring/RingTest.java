package dev.tutti.gloo.transport.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests rings and the sleep word, each end on a thread of its own. */
@Timeout(300)
class RingTest {
  private static final int CAPACITY = 4096;
  private static final AtomicInteger SINK = new AtomicInteger();

  private final MemorySegment ring = ring(CAPACITY);
  private final RingWriter writer = new RingWriter(ring);
  private final RingReader reader = new RingReader(ring);

  private static MemorySegment ring(long capacity) {
    return Arena.ofAuto().allocate(RingMemory.HEADER + capacity, 8);
  }

  private static <T> FutureTask<T> background(java.util.concurrent.Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  @Test
  void fillsUpAndEmpties() throws Exception {
    ByteBuffer bytes = ByteBuffer.allocate(2 * CAPACITY);
    RingChannel channel = channel(ring, new Sleep(line()));
    assertThat(reader.hasBytes()).isFalse();
    assertThat(writer.hasSpace()).isTrue();
    assertThat(channel.write(bytes)).isEqualTo(CAPACITY);
    assertThat(channel.write(bytes)).isZero();
    assertThat(channel.hasSpace()).isFalse();
    assertThat(reader.hasBytes()).isTrue();
    bytes.clear();
    assertThat(channel.read(bytes.limit(1))).isEqualTo(1);
    assertThat(channel.hasSpace()).isTrue();
    assertThat(channel.read(bytes.clear())).isEqualTo(CAPACITY - 1);
    assertThat(channel.read(bytes)).isZero();
    assertThat(channel.hasBytes()).isFalse();
  }

  private static RingChannel channel(MemorySegment ring, Sleep peer) {
    return new RingChannel(new RingWriter(ring), new RingReader(ring), peer, () -> {});
  }

  private static MemorySegment line() {
    return Arena.ofAuto().allocate(RingMemory.LINE, 8);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 64, 4096, 65_536})
  void keepsAllBytesInOrder(int capacity) throws Exception {
    int total = capacity == 1 ? 20_000 : 5_000_000;
    // Where both threads seldom run at the same time, each exchange takes a time slice.
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    MemorySegment memory = ring(capacity);
    FutureTask<Integer> writing =
        background(
            () -> {
              RingWriter out = new RingWriter(memory);
              SplittableRandom random = new SplittableRandom(1);
              ByteBuffer bytes = ByteBuffer.allocateDirect(3 * capacity);
              int sent = 0;
              while (sent < total && System.nanoTime() - deadline < 0) {
                bytes.clear().limit(Math.min(total - sent, 1 + random.nextInt(3 * capacity)));
                while (bytes.hasRemaining()) {
                  bytes.put(bytes.position(), pattern(sent + bytes.position()));
                  bytes.position(bytes.position() + 1);
                }
                sent += bytes.flip().remaining();
                while (bytes.hasRemaining()) {
                  if (out.write(bytes) == 0) {
                    Thread.onSpinWait();
                  }
                }
              }
              return sent;
            });
    RingReader in = new RingReader(memory);
    SplittableRandom random = new SplittableRandom(2);
    ByteBuffer bytes = ByteBuffer.allocateDirect(3 * capacity);
    int seen = 0;
    boolean over = false;
    while (!over || in.hasBytes()) {
      over = writing.isDone();
      bytes.clear().limit(1 + random.nextInt(3 * capacity));
      if (in.read(bytes) == 0) {
        Thread.onSpinWait();
      }
      bytes.flip();
      while (bytes.hasRemaining()) {
        byte value = bytes.get();
        if (value != pattern(seen)) {
          assertThat(value).as("byte %d", seen).isEqualTo(pattern(seen));
        }
        seen++;
      }
    }
    assertThat(writing.get()).isEqualTo(seen).isGreaterThan(2 * capacity);
  }

  private static byte pattern(int index) {
    return (byte) (index * 31 + (index >> 8));
  }

  @ParameterizedTest
  @ValueSource(longs = {-1, CAPACITY + 11, Long.MAX_VALUE, Long.MIN_VALUE, 9})
  void refusesATailThatCannotBe(long garbage) throws Exception {
    ByteBuffer bytes = ByteBuffer.allocate(10);
    writer.write(bytes);
    reader.read(bytes.clear());
    ring.set(ValueLayout.JAVA_LONG, RingWriter.TAIL, garbage);
    assertThat(reader.hasBytes()).isTrue();
    assertThatThrownBy(() -> reader.read(bytes.clear()))
        .isInstanceOf(RingCorruptedException.class)
        .hasMessageContaining("written " + garbage + " bytes, of which 10 were read");
  }

  @ParameterizedTest
  @ValueSource(longs = {-1, CAPACITY + 1, Long.MAX_VALUE, Long.MIN_VALUE})
  void refusesAHeadThatCannotBe(long garbage) throws Exception {
    ByteBuffer bytes = ByteBuffer.allocate(CAPACITY);
    writer.write(bytes.limit(10));
    reader.read(bytes.clear());
    bytes.clear();
    int written = 10;
    while (written < CAPACITY) {
      bytes.clear().limit(Math.min(1000, CAPACITY - written));
      written += writer.write(bytes);
    }
    ring.set(ValueLayout.JAVA_LONG, RingWriter.HEAD, garbage);
    assertThat(writer.hasSpace()).isTrue();
    assertThatThrownBy(
            () -> {
              for (int i = 0; i < 10; i++) {
                writer.write(bytes.clear());
              }
            })
        .isInstanceOf(RingCorruptedException.class)
        .hasMessageContaining("read " + garbage + " bytes of");
  }

  @Test
  void ringsOnceForEachSleep() throws Exception {
    MemorySegment line = line();
    Sleep own = new Sleep(line);
    Sleep one = new Sleep(line);
    Sleep other = new Sleep(line);
    assertThat(one.isToBeEnded()).isFalse();
    own.begin();
    assertThat(one.isToBeEnded()).isTrue();
    assertThat(one.isToBeEnded()).isFalse();
    assertThat(other.isToBeEnded()).isTrue();
    own.end();
    assertThat(one.isToBeEnded()).isFalse();
    own.begin();
    assertThat(one.isToBeEnded()).isTrue();
  }

  /**
   * Sleeps before nearly every byte. The second look is done here as in Progress; without it, a
   * rank would sleep forever. It ends early where each byte takes time slices.
   */
  @Test
  void neverSleepsThroughBytesOrSpace() throws Exception {
    int rounds = 30_000;
    MemorySegment memory = ring(1);
    MemorySegment readerLine = line();
    MemorySegment writerLine = line();
    Semaphore readerBell = new Semaphore(0);
    Semaphore writerBell = new Semaphore(0);
    AtomicBoolean over = new AtomicBoolean();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    FutureTask<Integer> writing =
        background(
            () -> {
              MemorySegment unused = ring(1);
              RingChannel channel =
                  new RingChannel(
                      new RingWriter(memory),
                      new RingReader(unused),
                      new Sleep(readerLine),
                      readerBell::release);
              Sleep own = new Sleep(writerLine);
              ByteBuffer bytes = ByteBuffer.allocate(1);
              int written = 0;
              for (int i = 0; i < rounds && System.nanoTime() - end < 0; i++) {
                bytes.put(0, (byte) i).clear();
                while (channel.write(bytes) == 0) {
                  writerBell.drainPermits();
                  skew(i & 1023);
                  channel.waits(true);
                  own.begin();
                  if (!channel.hasSpace() && !writerBell.tryAcquire(60, TimeUnit.SECONDS)) {
                    throw new AssertionError("slept through space, round " + i);
                  }
                  own.end();
                }
                written++;
              }
              over.set(true);
              readerBell.release();
              return written;
            });
    RingChannel channel =
        new RingChannel(
            new RingWriter(ring(1)),
            new RingReader(memory),
            new Sleep(writerLine),
            writerBell::release);
    Sleep own = new Sleep(readerLine);
    ByteBuffer bytes = ByteBuffer.allocate(1);
    int seen = 0;
    while (!over.get() || channel.hasBytes()) {
      while (channel.read(bytes.clear()) == 0 && !over.get()) {
        readerBell.drainPermits();
        skew(seen & 1023);
        own.begin();
        boolean looks = channel.hasBytes() || over.get();
        if (!looks && !readerBell.tryAcquire(60, TimeUnit.SECONDS)) {
          if (writing.isDone()) {
            writing.get();
          }
          throw new AssertionError("slept through bytes, round " + seen);
        }
        own.end();
      }
      if (bytes.position() == 0) {
        continue;
      }
      if (bytes.get(0) != (byte) seen) {
        assertThat(bytes.get(0)).isEqualTo((byte) seen);
      }
      seen++;
    }
    assertThat(writing.get(60, TimeUnit.SECONDS)).isEqualTo(seen).isPositive();
  }

  /**
   * When the two sides meet, at least one must see the other; without ordering of stores and loads,
   * neither might. It ends early on a machine that takes longer than ten seconds for all rounds.
   */
  @Test
  void whoMovesAPositionAndWhoFallsAsleepSeeEachOther() throws Exception {
    int rounds = 400_000;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    boolean[] isOver = new boolean[1];
    MemorySegment line = line();
    Sleep own = new Sleep(line);
    Sleep seen = new Sleep(line);
    ByteBuffer in = ByteBuffer.allocate(1);
    ByteBuffer out = ByteBuffer.allocate(1);
    AtomicInteger turn = new AtomicInteger();
    boolean[] rings = new boolean[1];
    FutureTask<Void> mover =
        background(
            () -> {
              for (int i = 0; ; i++) {
                meet(turn, 4 * i + 2);
                if (isOver[0]) {
                  return null;
                }
                skew(i >> 6 & 63);
                writer.write(out.clear());
                rings[0] = seen.isToBeEnded();
                meet(turn, 4 * i + 4);
              }
            });
    for (int i = 0; ; i++) {
      isOver[0] = i == rounds || System.nanoTime() - end > 0;
      meet(turn, 4 * i + 2);
      if (isOver[0]) {
        assertThat(i).isPositive();
        break;
      }
      skew(i & 63);
      own.begin();
      boolean looks = reader.hasBytes();
      meet(turn, 4 * i + 4);
      // The mover waits for the next round, or has finished.
      if (!looks && !rings[0]) {
        throw new AssertionError("neither saw the other in round " + i);
      }
      own.end();
      reader.read(in.clear());
    }
    mover.get(60, TimeUnit.SECONDS);
  }

  /** Waits until both threads have arrived here; spins, so that they continue at the same time. */
  @SuppressWarnings("ThreadPriorityCheck") // lets the other thread run if it has no core
  private static void meet(AtomicInteger turn, int goal) {
    turn.incrementAndGet();
    long polls = 0;
    while (turn.get() - goal < 0) {
      if (++polls > 1000) {
        Thread.yield();
      }
    }
  }

  /** Takes a short time, so that the threads meet in all possible interleavings. */
  private static void skew(int steps) {
    for (int i = 0; i < steps; i++) {
      SINK.setOpaque(i);
    }
  }
}
