package dev.tutti.checkpoint.folder;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.Disk;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Checked pieces of files in a given order, which two threads read ahead. One thread calls the
 * methods; an interrupt of it reaches no file.
 */
public final class PieceStream implements AutoCloseable {
  private static final int THREADS = 2;

  /** How many pieces are in memory: some that are read, and some that the caller uses. */
  private static final int AHEAD = THREADS + 2;

  private final PieceReader reader;
  private final Iterator<Piece> rest;
  private final ExecutorService threads =
      Executors.newFixedThreadPool(
          THREADS, Thread.ofPlatform().daemon().name("tutti-checkpoint-file-", 0).factory());
  private final Queue<CompletableFuture<MemorySegment>> begun = new ArrayDeque<>();
  private final Map<Integer, Integer> left = new HashMap<>();
  private final Map<Integer, Disk.Input> inputs = new HashMap<>();

  /**
   * Begins to read.
   *
   * @param pieces the pieces, in the order in which {@link #next} returns them
   */
  public PieceStream(PieceReader reader, List<Piece> pieces) {
    this.reader = reader;
    rest = pieces.iterator();
    pieces.forEach(piece -> left.merge(piece.file(), 1, Integer::sum));
    long longest = pieces.stream().mapToLong(reader::length).max().orElse(0);
    for (int i = 0; i < Math.min(AHEAD, pieces.size()); i++) {
      begin(memory(longest));
    }
  }

  /** Returns memory for a piece that the system can fill directly, and that other ranks can see. */
  public static MemorySegment memory(long bytes) {
    MemorySegment memory = Tensor.allocate(DType.UINT8, bytes + Disk.ALIGNMENT).segment();
    return memory.asSlice(-memory.address() & (Disk.ALIGNMENT - 1), bytes);
  }

  private void begin(MemorySegment memory) {
    if (rest.hasNext()) {
      Piece piece = rest.next();
      CompletableFuture<MemorySegment> result = new CompletableFuture<>();
      begun.add(result);
      threads.execute(() -> read(piece, memory, result));
    }
  }

  private void read(Piece piece, MemorySegment memory, CompletableFuture<MemorySegment> result) {
    try {
      MemorySegment bytes = memory.asSlice(0, reader.length(piece));
      reader.load(input(piece.file()), piece, bytes.asByteBuffer());
      release(piece.file());
      result.complete(memory);
    } catch (IOException | RuntimeException | Error e) {
      result.completeExceptionally(e);
    }
  }

  private synchronized Disk.Input input(int file) throws IOException {
    Disk.Input input = inputs.get(file);
    if (input == null) {
      input = reader.open(file);
      inputs.put(file, input);
    }
    return input;
  }

  /** Closes a file of which all pieces were read. */
  private synchronized void release(int file) throws IOException {
    if (left.merge(file, -1, Integer::sum) == 0) {
      Disk.Input input = inputs.remove(file);
      if (input != null) {
        input.close();
      }
    }
  }

  /**
   * Waits for the next piece.
   *
   * @return memory that begins with it, until it is given to {@link #use}
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public MemorySegment next() throws IOException {
    try {
      return begun.remove().join();
    } catch (CompletionException e) {
      throw Pieces.unwrapped(e);
    }
  }

  /** Reads a further piece into memory that {@link #next} returned. */
  public void use(MemorySegment memory) {
    begin(memory);
  }

  /** Waits for the threads, and closes the files. */
  @Override
  public void close() throws IOException {
    threads.close();
    for (Disk.Input input : inputs.values()) {
      input.close();
    }
  }
}
