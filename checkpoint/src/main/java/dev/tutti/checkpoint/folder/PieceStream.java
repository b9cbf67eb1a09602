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
 * Batches of checked pieces of files in a given order, which two threads read ahead. One thread
 * calls the methods; an interrupt of it reaches no file.
 */
public final class PieceStream implements AutoCloseable {
  private static final int THREADS = 2;

  /** How many batches are in memory: one that is read, and two that the caller uses. */
  private static final int AHEAD = 3;

  private final PieceReader reader;
  private final Iterator<PieceBatch> rest;
  private final ExecutorService threads =
      Executors.newFixedThreadPool(
          THREADS, Thread.ofPlatform().daemon().name("tutti-checkpoint-file-", 0).factory());
  private final Queue<CompletableFuture<MemorySegment>> begun = new ArrayDeque<>();
  private final Map<Integer, Integer> left = new HashMap<>();
  private final Map<Integer, Disk.Input> inputs = new HashMap<>();

  /**
   * Begins to read.
   *
   * @param batches the batches, in the order in which {@link #next} returns them
   */
  public PieceStream(PieceReader reader, List<PieceBatch> batches) {
    this.reader = reader;
    rest = batches.iterator();
    for (PieceBatch batch : batches) {
      batch.places().forEach(place -> left.merge(place.piece().file(), 1, Integer::sum));
    }
    long longest = PieceBatch.longest(batches);
    for (int i = 0; i < Math.min(AHEAD, batches.size()); i++) {
      use(memory(longest));
    }
  }

  /** Returns memory for a batch that the system can fill directly, and other ranks can see. */
  public static MemorySegment memory(long bytes) {
    MemorySegment memory = Tensor.allocate(DType.UINT8, bytes + Disk.ALIGNMENT).segment();
    return memory.asSlice(-memory.address() & (Disk.ALIGNMENT - 1), bytes);
  }

  /** Reads a further batch into memory, such as {@link #next} returned. */
  public void use(MemorySegment memory) {
    if (rest.hasNext()) {
      CompletableFuture<?>[] reads =
          rest.next().places().stream()
              .map(place -> CompletableFuture.runAsync(() -> read(place, memory), threads))
              .toArray(CompletableFuture<?>[]::new);
      begun.add(CompletableFuture.allOf(reads).thenApply(done -> memory));
    }
  }

  private void read(PieceBatch.Place place, MemorySegment memory) {
    int file = place.piece().file();
    MemorySegment bytes = memory.asSlice(place.start(), place.length());
    try {
      reader.load(input(file), place.piece(), bytes.asByteBuffer());
      release(file);
    } catch (IOException e) {
      throw new CompletionException(e);
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
   * Waits for the next batch.
   *
   * @return the memory that it is in, until that is given to {@link #use}
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public MemorySegment next() throws IOException {
    try {
      return begun.remove().join();
    } catch (CompletionException e) {
      throw Pieces.unwrapped(e);
    }
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
