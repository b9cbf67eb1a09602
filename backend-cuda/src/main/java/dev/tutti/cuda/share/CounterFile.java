package dev.tutti.cuda.share;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.BackendException;
import dev.tutti.cpu.wait.Uninterrupted;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.IntConsumer;

/**
 * A file of counters that show which process uses each sent tensor, in memory shared between a
 * producer and its consumers: one signed word for each tensor. The word is the negated ticket until
 * a consumer opens the tensor, the {@link ProcessMark} of the consumer while the tensor is open,
 * and 0 otherwise. All changes use compare-and-set, so a word is returned exactly once, by the
 * consumer or by the producer on behalf of a dead one, and never drops below zero.
 *
 * <p>The file has no name: consumers open it through the producer's descriptor, so nothing is left
 * of it when the producer ends, however that happens. Returned words are marked in a two-level
 * bitmap, so that the producer need not scan all words. All methods may be called from any thread,
 * but not after {@link #close}.
 */
public final class CounterFile implements AutoCloseable {
  /** The number of words in a file. */
  public static final int SLOTS = Long.SIZE * Long.SIZE;

  private static final long SUMMARY_AT = 8;
  private static final long BITS_AT = 64;
  private static final long WORDS_AT = BITS_AT + Long.SIZE * (long) Long.BYTES;
  private static final long BYTES = WORDS_AT + SLOTS * (long) Long.BYTES;
  private static final VarHandle WORD = JAVA_LONG.varHandle();

  private final Arena arena = Arena.ofShared();
  private final MemorySegment words;
  private final int fd;

  private CounterFile(Path path, int fd) throws IOException {
    this.fd = fd;
    try {
      words = Uninterrupted.run(() -> map(path, fd >= 0, arena));
    } catch (IOException | RuntimeException e) {
      arena.close();
      throw e;
    }
  }

  private static MemorySegment map(Path path, boolean isNew, Arena arena) throws IOException {
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (!isNew && file.size() != BYTES) {
        throw new IOException("not a counter file: " + path);
      }
      return file.map(MapMode.READ_WRITE, 0, BYTES, arena);
    }
  }

  /**
   * Creates a file for this process's counters.
   *
   * @param nonce a random number that identifies the file
   * @throws BackendException if the system has no memory or descriptor left
   */
  public static CounterFile create(long nonce) {
    int fd = LinuxSockets.memoryFile("tutti-cuda-counters");
    if (fd < 0) {
      throw new BackendException("cannot create a counter file (error " + -fd + ")");
    }
    try {
      CounterFile file = new CounterFile(Path.of("/proc/self/fd/" + fd), fd);
      WORD.setVolatile(file.words, 0L, nonce);
      return file;
    } catch (IOException | RuntimeException e) {
      LinuxSockets.close(fd);
      throw new BackendException("cannot create a counter file", e);
    }
  }

  /**
   * Opens a producer's file.
   *
   * @param producer the producer's mark
   * @param fd the file's descriptor in the producer
   * @param nonce the random number that identifies the file
   * @throws IOException if the producer no longer has the file, or this process may not see it
   */
  public static CounterFile open(long producer, int fd, long nonce) throws IOException {
    CounterFile file =
        new CounterFile(Path.of("/proc/" + ProcessMark.pid(producer) + "/fd/" + fd), -1);
    if ((long) WORD.getVolatile(file.words, 0L) != nonce) {
      file.close();
      throw new IOException(
          "process " + ProcessMark.pid(producer) + " no longer has the counters of the handle");
    }
    return file;
  }

  /** Returns the descriptor in the process that created the file, or -1 in others. */
  public int fd() {
    return fd;
  }

  private static long at(int slot) {
    return WORDS_AT + slot * (long) Long.BYTES;
  }

  /** Returns a word. */
  public long get(int slot) {
    return (long) WORD.getVolatile(words, at(slot));
  }

  /**
   * Records that a tensor was sent.
   *
   * @param slot a free word
   * @param ticket the ticket, which must be positive
   */
  public void send(int slot, long ticket) {
    change(slot, 0, -ticket);
  }

  /** Opens a sent tensor; returns whether it was there and not yet opened. */
  public boolean take(int slot, long ticket, long consumer) {
    return change(slot, -ticket, consumer);
  }

  /** Undoes {@link #take}, so that the tensor can be opened again. */
  public void putBack(int slot, long ticket, long consumer) {
    change(slot, consumer, -ticket);
  }

  /** Takes back a tensor that was not opened; returns whether that was the case. */
  public boolean revoke(int slot, long ticket) {
    return change(slot, -ticket, 0);
  }

  /** Returns a tensor that a consumer had open; further calls change nothing. */
  public boolean release(int slot, long consumer) {
    if (!change(slot, consumer, 0)) {
      return false;
    }
    int group = slot / Long.SIZE;
    long _ = (long) WORD.getAndBitwiseOr(words, BITS_AT + group * (long) Long.BYTES, 1L << slot);
    long _ = (long) WORD.getAndBitwiseOr(words, SUMMARY_AT, 1L << group);
    return true;
  }

  private boolean change(int slot, long from, long to) {
    return WORD.compareAndSet(words, at(slot), from, to);
  }

  /**
   * Passes on the slots that were released since the last call; costs a single read if there are
   * none.
   */
  public void drain(IntConsumer released) {
    if ((long) WORD.getVolatile(words, SUMMARY_AT) == 0) {
      return;
    }
    long groups = (long) WORD.getAndSet(words, SUMMARY_AT, 0L);
    for (; groups != 0; groups &= groups - 1) {
      int group = Long.numberOfTrailingZeros(groups);
      long bits = (long) WORD.getAndSet(words, BITS_AT + group * (long) Long.BYTES, 0L);
      for (; bits != 0; bits &= bits - 1) {
        released.accept(group * Long.SIZE + Long.numberOfTrailingZeros(bits));
      }
    }
  }

  /** Unmaps the file, and closes it in the process that created it; must be called only once. */
  @Override
  public void close() {
    arena.close();
    if (fd >= 0) {
      LinuxSockets.close(fd);
    }
  }
}
