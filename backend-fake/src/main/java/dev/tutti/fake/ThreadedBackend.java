package dev.tutti.fake;

import dev.tutti.BackendException;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.SparseSum;
import dev.tutti.spi.Staging;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Is one rank of a group whose ranks are threads of this JVM. */
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
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    run(op, Call.inPlace(op, tensor).withRoot(root));
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    run(op, Call.inPlace(op, tensor).withOp(reduceOp));
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw new UnsupportedOperationException(
          "sparse tensors can be reduced by SUM only, not " + reduceOp);
    }
    op.took(PATH);
    List<Tensor> result = new ArrayList<>(1);
    Call call = Call.of(op, List.of(tensor), List.of()).withOp(reduceOp);
    hub.collectives()
        .exchange(
            rank,
            op,
            call,
            (phase, self, calls) -> {
              List<Tensor> tensors = new ArrayList<>(calls.size());
              calls.forEach(each -> tensors.add(each.inputs().get(0)));
              result.add(SparseSum.of(tensors));
            });
    op.completeWith(List.copyOf(result));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    run(op, Call.of(op, tensors, tensors).withOp(reduceOp));
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    run(op, Call.inPlace(op, tensor).withOp(reduceOp).withRoot(root));
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    run(op, Call.of(op, List.of(input), outputs));
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    run(op, Call.of(op, List.of(input), List.of(output)));
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    run(op, Call.of(op, inputs, outputs));
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    run(op, Call.of(op, List.of(input), outputs).withRoot(root));
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    run(op, Call.of(op, inputs, List.of(output)).withRoot(root));
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    run(op, Call.of(op, inputs, List.of(output)).withOp(reduceOp));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    run(op, Call.of(op, List.of(input), List.of(output)).withOp(reduceOp));
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    run(op, Call.of(op, inputs, outputs).withOp(reduceOp));
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    run(op, Call.of(op, inputs, outputs));
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    run(
        op,
        Call.of(
            op, Staging.splitRows(input, inputSplits), Staging.splitRows(output, outputSplits)));
  }

  @Override
  public void barrier(Operation op) throws Exception {
    run(op, Call.of(op, List.of(), List.of()));
  }

  /** Names all missing ranks, whether or not it is asked to wait for all: it knows them anyway. */
  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    run(op, Call.of(op, List.of(), List.of()));
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
    Call call = Call.symmetric(op, byteSize, own);
    try {
      List<Call> calls = hub.collectives().exchange(rank, op, call, Movement::move);
      SharedBlock block = calls.get(0).block();
      if (block == null) {
        throw new BackendException(
            "allocateSymmetric on rank "
                + rank
                + ": rank 0 of group "
                + hub.group()
                + " has no room for "
                + hub.size()
                + " buffers of "
                + byteSize
                + " bytes");
      }
      if (own != null) {
        hub.watch(own);
        own = null;
      }
      SharedMemory memory = new SharedMemory(hub, block, rank, open);
      open.add(memory);
      return memory;
    } finally {
      if (own != null) {
        own.discard();
      }
    }
  }

  /** Makes a block as if nobody interrupted this thread, which would close its file. */
  private @Nullable SharedBlock blockFor(long byteSize) {
    boolean interrupted = Thread.interrupted();
    try {
      while (true) {
        try {
          return new SharedBlock(hub.group(), hub.size(), byteSize);
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } catch (IOException | OutOfMemoryError | ArithmeticException e) {
      System.getLogger(ThreadedBackend.class.getName())
          .log(
              System.Logger.Level.DEBUG,
              "rank " + rank + ", group " + hub.group() + ": no symmetric memory",
              e);
      return null;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
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

  private void run(Operation op, Call call) throws Exception {
    op.took(PATH);
    hub.collectives().exchange(rank, op, call.withoutOverlap(), Movement::move);
  }
}
