package dev.tutti.gloo.algorithm;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Runs collectives over sockets between ranks that are all of Tutti, by whichever algorithm suits
 * the size; where Gloo's own is the one, as {@link WireCollectives}.
 */
public final class TuttiCollectives implements Collectives {
  private final WireCollectives wire;
  private final AlgorithmTable table;
  private final int size;
  private final SocketAlgorithms algorithms;

  /**
   * Prepares for any number of operations.
   *
   * @param transport connects the ranks, all of Tutti
   * @param wire runs what needs no other algorithm
   * @param table the same on all ranks
   */
  public TuttiCollectives(Transport transport, WireCollectives wire, AlgorithmTable table) {
    this.wire = wire;
    this.table = table;
    this.size = transport.size();
    this.algorithms = new SocketAlgorithms(transport, table, new Scratch());
  }

  @Override
  public void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    int tag = wire.next(Signature.ofAllReduce(tensor, reduceOp.kind(), algorithm));
    Optional<Algorithm> asked = Algorithm.of(algorithm);
    if (asked.isEmpty()) {
      algorithms.allReduce(op, tag, tensor, reduceOp);
    } else {
      op.took(asked.get().path());
      algorithms.allReduce(op, tag, tensor, reduceOp, asked.get());
    }
  }

  @Override
  public @Nullable String reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return Algorithm.of(algorithm).isPresent()
        ? null
        : "over sockets there are ring, recursive-doubling, halving-doubling and"
            + " pipelined-halving-doubling";
  }

  @Override
  public Tensor allReduceSparse(Operation op, Tensor tensor) throws Exception {
    return wire.allReduceSparse(op, tensor, false);
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    int tag =
        wire.next(
            Signature.of(OpType.REDUCE, tensor.dtype(), reduceOp.kind(), root, tensor.byteSize()));
    algorithms.reduce(op, tag, tensor, reduceOp, root);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    long bytes = tensor.byteSize();
    int tag = wire.next(Signature.of(OpType.BROADCAST, tensor.dtype(), root, bytes));
    algorithms.broadcast(op, tag, tensor.segment(), bytes, root);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    long bytes = input.byteSize();
    int tag = wire.next(Signature.of(OpType.ALL_GATHER, input.dtype(), 0, bytes));
    algorithms.allGather(op, tag, wire.fillOwn(output, input), bytes);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    wire.gather(op, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    wire.scatter(op, output, inputs, root);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    wire.allToAll(op, outputs, inputs);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    if (table.choose(OpType.REDUCE_SCATTER, output.byteSize() * size, size)
        == Algorithm.ALL_REDUCE) {
      wire.reduceScatter(op, output, inputs, reduceOp);
    } else {
      pairwise(op, output, inputs, reduceOp);
    }
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    if (table.choose(OpType.REDUCE_SCATTER, input.byteSize(), size) == Algorithm.ALL_REDUCE) {
      wire.reduceScatterInto(op, output, input, reduceOp);
      return;
    }
    long numel = output.numel();
    Tensor flat = input.flatten();
    List<Tensor> parts = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      parts.add(flat.narrow(0, rank * numel, numel));
    }
    pairwise(op, output, parts, reduceOp);
  }

  private void pairwise(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    int tag =
        wire.next(
            Signature.of(
                OpType.REDUCE_SCATTER, output.dtype(), reduceOp.kind(), 0, output.byteSize()));
    algorithms.reduceScatter(op, tag, output, inputs, reduceOp);
  }

  @Override
  public void barrier(Operation op) throws Exception {
    wire.barrier(op);
  }

  @Override
  public String toString() {
    return "sockets";
  }

  @Override
  public void close() {
    wire.close();
  }
}
