package dev.tutti.fake;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import java.util.List;

/** One rank of a world that does not exist. */
final class FakeBackend implements Backend {
  /** The name of the setting by which every collective fails. */
  static final String ERROR_ON_COLLECTIVE = "TUTTI_FAKE_ERROR_ON_COLLECTIVE";

  private final int rank;
  private final int size;
  private final FakeCopies copies;
  private final boolean errorOnCollective;

  FakeBackend(int rank, int size, FakeCopies copies, boolean errorOnCollective) {
    this.rank = rank;
    this.size = size;
    this.copies = copies;
    this.errorOnCollective = errorOnCollective;
  }

  private void collective(Operation op) {
    if (errorOnCollective) {
      throw new TuttiException(
          "%s #%s on rank %s of the fake backend fails as %s or the program asked"
              .formatted(op.type().label(), op.sequenceNumber(), rank, ERROR_ON_COLLECTIVE));
    }
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) {
    collective(op);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) {
    collective(op);
    copies.reduce(tensor, reduceOp);
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) {
    collective(op);
    op.completeWith(List.of(copies.sparseSum(tensor)));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    collective(op);
    for (Tensor tensor : tensors) {
      copies.reduce(tensor, reduceOp);
    }
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) {
    collective(op);
    if (rank == root) {
      copies.reduce(tensor, reduceOp);
    }
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) {
    collective(op);
    for (Tensor output : outputs) {
      FakeCopies.copyPrefix(input, output);
    }
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) {
    collective(op);
    FakeCopies.tile(input, output);
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    collective(op);
    for (int i = 0; i < inputs.size(); i++) {
      FakeCopies.tile(inputs.get(i), outputs.get(i));
    }
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) {
    allGather(op, outputs, input);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) {
    collective(op);
    if (rank == root) {
      FakeCopies.copyPrefix(inputs.get(rank), output);
    }
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp) {
    collective(op);
    FakeCopies.copyPrefix(inputs.get(rank), output);
    copies.reduce(output, reduceOp);
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp) {
    collective(op);
    ownPart(output, input, reduceOp);
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) {
    collective(op);
    for (int i = 0; i < inputs.size(); i++) {
      ownPart(outputs.get(i), inputs.get(i), reduceOp);
    }
  }

  private void ownPart(Tensor output, Tensor input, ReduceOp reduceOp) {
    long count = output.numel();
    FakeCopies.copyPrefix(input.flatten().narrow(0, rank * count, count), output);
    copies.reduce(output, reduceOp);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    collective(op);
    copies.exchange(outputs, inputs, rank);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits) {
    collective(op);
    copies.exchangeSingle(output, input, outputSplits, inputSplits, rank);
  }

  @Override
  public void barrier(Operation op) {
    collective(op);
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) {
    collective(op);
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    op.complete();
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    op.completeFrom(peer);
  }

  /** Reports the next rank as the sender. */
  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    op.completeFrom((rank + 1) % size);
  }

  /** Does nothing: no operation ever waits. */
  @Override
  public void abort(Throwable cause) {}

  @Override
  public void close() {}
}
