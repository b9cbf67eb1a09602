package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.folder.PieceBatch;
import dev.tutti.checkpoint.folder.PieceReader;
import dev.tutti.checkpoint.folder.PieceStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A read of what all ranks need: each batch is read by one of them, which broadcasts it. Storage
 * gives each byte once, however many ranks there are.
 */
final class SharedRead {
  /*
   * While a batch is copied to its tensors, the next one is broadcast, and threads of the stream
   * read those after it. A rank that fails takes part in all further broadcasts, so that no other
   * rank waits for it; all ranks then fail together.
   */
  private final ProcessGroup group;
  private final Agreement agreement;
  private final PieceReader reader;
  private final Reads reads;
  private final List<PieceBatch> batches;

  /** Memory for batches of other ranks, of which one is broadcast while the other is copied. */
  private final List<MemorySegment> received = new ArrayList<>();

  private @Nullable Throwable failure;

  /** A batch on its way: its memory, which may be longer, and the broadcast. */
  private record Delivery(
      PieceBatch batch, MemorySegment memory, boolean isRead, CompletableFuture<Void> broadcast) {}

  /**
   * Creates a read.
   *
   * @param reads what is read, the same pieces on all ranks
   */
  SharedRead(ProcessGroup group, Agreement agreement, PieceReader reader, Reads reads) {
    this.group = group;
    this.agreement = agreement;
    this.reader = reader;
    this.reads = reads;
    batches = PieceBatch.of(reader, reads.pieces());
    long longest = PieceBatch.longest(batches);
    for (int i = 0; i < Math.min(2, batches.size()); i++) {
      received.add(PieceStream.memory(longest));
    }
  }

  /** Reads all batches and copies them to their tensors. All ranks call it. */
  void run(String what) throws IOException {
    List<PieceBatch> own = new ArrayList<>();
    for (int i = group.rank(); i < batches.size(); i += group.size()) {
      own.add(batches.get(i));
    }
    try (PieceStream stream = new PieceStream(reader, own)) {
      Delivery before = null;
      for (int i = 0; i < batches.size(); i++) {
        Delivery next = begin(stream, i);
        end(what, stream, before);
        before = next;
      }
      end(what, stream, before);
    }
    switch (failure) {
      case null -> {}
      case IOException e -> throw e;
      case Error e -> throw e;
      default -> throw (RuntimeException) failure;
    }
  }

  /** Begins to broadcast a batch, which this rank reads if it is its turn. */
  private Delivery begin(PieceStream stream, int number) {
    PieceBatch batch = batches.get(number);
    int root = number % group.size();
    MemorySegment memory = received.get(number % received.size());
    boolean isRead = false;
    if (root == group.rank() && failure == null) {
      try {
        memory = stream.next();
        isRead = true;
      } catch (IOException | RuntimeException | Error e) {
        failure = e;
      }
    }
    Tensor bytes = Tensor.wrap(memory, DType.UINT8, batch.byteSize());
    return new Delivery(batch, memory, isRead, agreement.start(() -> group.broadcast(bytes, root)));
  }

  /** Waits for a broadcast, and copies the batch to its tensors. */
  private void end(String what, PieceStream stream, @Nullable Delivery delivery) {
    if (delivery == null) {
      return;
    }
    agreement.await(what, delivery.broadcast);
    if (failure == null) {
      try {
        delivery.batch.forEach(delivery.memory, reads::deliver);
      } catch (RuntimeException | Error e) {
        failure = e;
      }
    }
    if (delivery.isRead) {
      stream.use(delivery.memory);
    }
  }
}
