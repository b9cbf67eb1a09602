package dev.tutti.fake;

import dev.tutti.BackendException;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cpu.SparseSum;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** One rank of a group whose ranks are threads of this JVM. */
final class ThreadedBackend implements Backend {
  private static final String PATH = "threaded";

  private final Hub hub;
  private final int rank;
  private final Set<SharedMemory> open = ConcurrentHashMap.newKeySet();

  ThreadedBackend(Hub hub, int rank) {
    this.hub = hub;
    this.rank = rank;
  }

  @Override
  public void run(Operation op) throws Exception {
    switch (op.type()) {
      case SEND, RECV, RECV_ANY_SOURCE, ALL_REDUCE_SPARSE, ALLOCATE_SYMMETRIC ->
          Backend.super.run(op);
      default -> {
        // A monitored barrier too: the missing ranks are known anyway.
        op.took(PATH);
        hub.collectives().exchange(rank, op, Contribution.of(op, null), Movement::move);
      }
    }
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw new UnsupportedOperationException(
          "sparse tensors can be reduced by SUM only, not " + reduceOp);
    }
    op.took(PATH);
    List<Tensor> result = new ArrayList<>(1);
    hub.collectives()
        .exchange(
            rank,
            op,
            Contribution.of(op, null),
            (phase, self, all) ->
                result.add(SparseSum.of(all.stream().map(each -> each.call().input()).toList())));
    op.completeWith(List.copyOf(result));
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    hub.mailbox().send(rank, op, tensor, peer, tag);
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    hub.mailbox().recv(rank, op, tensor, peer, tag);
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    hub.mailbox().recvAnySource(rank, op, tensor, tag);
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    SharedBlock own = rank == 0 ? blockFor(byteSize) : null;
    try {
      SharedBlock block =
          hub.collectives()
              .exchange(rank, op, Contribution.of(op, own), Movement::move)
              .get(0)
              .block();
      if (block == null) {
        throw new BackendException(
            "allocateSymmetric on rank %s: rank 0 of group %s has no room for %s buffers of %s bytes"
                .formatted(rank, hub.group(), hub.size(), byteSize));
      }
      if (own != null) {
        hub.watch(own);
        own = null;
      }
      SharedMemory memory =
          new SharedMemory(hub.size(), block, rank, open, () -> hub.unwatch(block));
      open.add(memory);
      return memory;
    } finally {
      if (own != null) {
        own.discard();
      }
    }
  }

  /** Creates a block; returns null if there is no room for it. */
  private @Nullable SharedBlock blockFor(long byteSize) {
    try {
      return new SharedBlock(hub.group(), hub.size(), byteSize, hub.time());
    } catch (IOException | OutOfMemoryError | ArithmeticException e) {
      System.getLogger(ThreadedBackend.class.getName())
          .log(
              System.Logger.Level.DEBUG,
              "rank " + rank + ", group " + hub.group() + ": cannot allocate symmetric memory",
              e);
      return null;
    }
  }

  @Override
  public void abort(Throwable cause) {
    hub.abort(rank, cause);
  }

  @Override
  public void close() {
    open.forEach(SharedMemory::close);
    hub.leave(rank);
  }
}
