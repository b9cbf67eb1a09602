package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Work on pieces of a file by two threads, so that one computes a checksum while the other waits
 * for the device. An interrupt of the caller reaches no file.
 */
final class Pieces {
  private static final int THREADS = 2;

  private Pieces() {}

  /** Work on one piece. */
  interface Task {
    /**
     * Does the work.
     *
     * @param piece a position from 0 on
     * @param buffer aligned memory for a piece, which the next one overwrites
     */
    void run(int piece, ByteBuffer buffer) throws IOException;
  }

  /**
   * Runs a task for each of a number of pieces, in about ascending order.
   *
   * @param size the number of bytes of all pieces together
   * @throws IOException what a task threw; no further ones begin then
   */
  static void forEach(int count, long size, Task task) throws IOException {
    AtomicInteger next = new AtomicInteger();
    CompletableFuture<?>[] workers = new CompletableFuture<?>[Math.min(THREADS, count)];
    for (int i = 0; i < workers.length; i++) {
      CompletableFuture<Void> result = new CompletableFuture<>();
      workers[i] = result;
      Thread.ofPlatform()
          .daemon()
          .name("tutti-checkpoint-file-" + i)
          .start(() -> work(next, count, (int) Math.min(size, FileRecord.PIECE), task, result));
    }
    try {
      CompletableFuture.allOf(workers).join();
    } catch (CompletionException e) {
      throw unwrapped(e);
    }
  }

  /** Throws what work threw, or returns the exception if that is something else. */
  static CompletionException unwrapped(CompletionException e) throws IOException {
    return switch (e.getCause()) {
      case IOException failed -> throw failed;
      case RuntimeException failed -> throw failed;
      case Error failed -> throw failed;
      case null, default -> e;
    };
  }

  private static void work(
      AtomicInteger next, int count, int bytes, Task task, CompletableFuture<Void> result) {
    try (Arena arena = Arena.ofConfined()) {
      ByteBuffer buffer = arena.allocate(bytes, Disk.ALIGNMENT).asByteBuffer();
      for (int piece = next.getAndIncrement(); piece < count; piece = next.getAndIncrement()) {
        task.run(piece, buffer.clear());
      }
      result.complete(null);
    } catch (IOException | RuntimeException | Error e) {
      next.set(count);
      result.completeExceptionally(e);
    }
  }
}
