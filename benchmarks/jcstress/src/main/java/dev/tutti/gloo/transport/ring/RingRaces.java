package dev.tutti.gloo.transport.ring;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/** Races between the two ends of a ring, and between each end and a rank that goes to sleep. */
public final class RingRaces {
  private RingRaces() {}

  private static void write(RingWriter writer, ByteBuffer bytes) {
    try {
      writer.write(bytes);
    } catch (RingCorruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static int read(RingReader reader, ByteBuffer bytes) {
    try {
      return reader.read(bytes);
    } catch (RingCorruptedException e) {
      throw new AssertionError(e);
    }
  }

  /**
   * The zeroed memory of each state; it comes from a pool, as allocating off-heap memory is slow.
   */
  private static final class Memory {
    private static final int STATES = 1 << 16;
    private static final int CAPACITY = 8;
    private static final long BYTES = 2L * RingMemory.LINE + RingMemory.HEADER;
    private static final MemorySegment ALL = Arena.global().allocate(STATES * BYTES, 128);
    private static final AtomicInteger NEXT = new AtomicInteger();

    final MemorySegment ring;
    final Sleep own;
    final Sleep seenByPeer;

    Memory() {
      long at = (NEXT.getAndIncrement() & STATES - 1) * BYTES;
      MemorySegment slice = ALL.asSlice(at, BYTES).fill((byte) 0);
      MemorySegment line = slice.asSlice(0, RingMemory.LINE);
      ring = slice.asSlice(RingMemory.LINE, RingMemory.HEADER + CAPACITY);
      own = new Sleep(line);
      seenByPeer = new Sleep(line);
    }
  }

  /** The reader goes to sleep while the writer writes. */
  @JCStressTest
  @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "rung for nothing")
  @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "woken")
  @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "did not sleep")
  @Outcome(id = "false, false", expect = FORBIDDEN, desc = "sleeps and nobody rings")
  @State
  public static class BytesAgainstSleep {
    private final Memory memory = new Memory();
    private final RingWriter writer = new RingWriter(memory.ring);
    private final RingReader reader = new RingReader(memory.ring);
    private final ByteBuffer bytes = ByteBuffer.allocate(1);

    @Actor
    public void writer(ZZ_Result result) {
      write(writer, bytes);
      result.r1 = memory.seenByPeer.isToBeEnded();
    }

    @Actor
    public void reader(ZZ_Result result) {
      memory.own.begin();
      result.r2 = reader.hasBytes();
    }
  }

  /** The writer finds the ring full and goes to sleep while the reader reads. */
  @JCStressTest
  @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "rung for nothing")
  @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "woken")
  @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "did not sleep")
  @Outcome(id = "false, false", expect = FORBIDDEN, desc = "sleeps and nobody rings")
  @State
  public static class SpaceAgainstSleep {
    private final Memory memory = new Memory();
    private final RingWriter writer = new RingWriter(memory.ring);
    private final RingReader reader = new RingReader(memory.ring);
    private final ByteBuffer bytes = ByteBuffer.allocate(1);

    public SpaceAgainstSleep() {
      ByteBuffer all = ByteBuffer.allocate(Memory.CAPACITY);
      while (all.hasRemaining()) {
        write(writer, all);
      }
    }

    @Actor
    public void reader(ZZ_Result result) {
      read(reader, bytes);
      result.r1 = reader.writerWaits() && memory.seenByPeer.isToBeEnded();
    }

    @Actor
    public void writer(ZZ_Result result) {
      writer.waits(true);
      memory.own.begin();
      result.r2 = writer.hasSpace();
    }
  }

  /** The reader sees only bytes that were written before they were published. */
  @JCStressTest
  @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing yet")
  @Outcome(id = "2, 77", expect = ACCEPTABLE, desc = "both bytes")
  @State
  public static class BytesAgainstRead {
    private final Memory memory = new Memory();
    private final RingWriter writer = new RingWriter(memory.ring);
    private final RingReader reader = new RingReader(memory.ring);
    private final ByteBuffer from = ByteBuffer.wrap(new byte[] {7, 70});
    private final ByteBuffer to = ByteBuffer.allocate(2);

    @Actor
    public void writer() {
      write(writer, from);
    }

    @Actor
    public void reader(II_Result result) {
      result.r1 = read(reader, to);
      result.r2 = to.get(0) + to.get(1);
    }
  }
}
