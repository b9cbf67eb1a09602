package dev.tutti.gloo.hier;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.backend.SocketBackend;
import dev.tutti.gloo.backend.Wire;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Runs the collectives of a group on several hosts, some of which have several ranks: through
 * shared memory within a host, and between hosts over sockets. A collective without a two-level
 * form runs as if all ranks were on different hosts, but its messages within a host go through
 * shared memory.
 */
public final class TwoLevelBackend extends SocketBackend {
  /*
   * Each operation is entered in shared memory and also numbered and signed for the sockets, so
   * that ranks that call different operations detect this whichever way they communicate.
   */
  /** The path is reported last, because the algorithms between hosts report theirs. */
  static final String PATH = "gloo/two-level";

  private final HostGroups groups;
  private final IntraHostSteps host;
  private final int rank;
  private final TwoLevelAllReduce allReduce;
  private final TwoLevelReduce reduce;
  private final TwoLevelBroadcast broadcast;
  private final TwoLevelAllGather allGather;
  private final @Nullable TwoLevelReduceScatter reduceScatter;
  private final TwoLevelBarrier barrier;

  /**
   * Creates an instance for any number of operations.
   *
   * @param groups the ranks of each host
   * @param channel connects the ranks of this host; closed with this backend
   * @param wire connects all ranks
   * @param table the table of algorithms, the same on all ranks
   */
  public TwoLevelBackend(HostGroups groups, ShmChannel channel, Wire wire, AlgorithmTable table) {
    super(wire, table);
    Transport transport = wire.transport();
    this.groups = groups;
    this.rank = transport.rank();
    host = new IntraHostSteps(channel);
    InterHostAlgorithms interHost = new InterHostAlgorithms(groups, transport, table);
    allReduce = new TwoLevelAllReduce(groups, host, interHost);
    reduce = new TwoLevelReduce(groups, host, interHost);
    broadcast = new TwoLevelBroadcast(groups, host, interHost);
    allGather = new TwoLevelAllGather(groups, host, transport);
    reduceScatter = groups.areEven() ? new TwoLevelReduceScatter(groups, host, interHost) : null;
    barrier = new TwoLevelBarrier(host, interHost);
  }

  private int enter(long signature) {
    host.enter(signature);
    return next(signature);
  }

  @Override
  protected void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, RequestedAlgorithm algorithm)
      throws Exception {
    if (algorithm != RequestedAlgorithm.AUTO && algorithm != RequestedAlgorithm.TWO_LEVEL) {
      super.allReduce(op, tensor, reduceOp, algorithm);
      return;
    }
    int tag = enter(Signature.ofAllReduce(tensor, reduceOp.kind(), algorithm));
    if (reduceOp.kind() == ReduceOp.Kind.AVG) {
      Tensor sums = mean().summands(tensor);
      allReduce.run(op, tag, sums, mean().sum(tensor.dtype()));
      mean().finish(sums, tensor);
    } else {
      allReduce.run(op, tag, tensor, reduceOp);
    }
    op.took(PATH);
  }

  @Override
  protected @Nullable String reason(
      RequestedAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return algorithm == RequestedAlgorithm.TWO_LEVEL
            || super.reason(algorithm, tensor, reduceOp) == null
        ? null
        : "the algorithms between hosts are two-level, ring, recursive-doubling, halving-doubling"
            + " and pipelined-halving-doubling";
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    int tag =
        enter(
            Signature.of(OpType.REDUCE, tensor.dtype(), reduceOp.kind(), root, tensor.byteSize()));
    if (reduceOp.kind() == ReduceOp.Kind.AVG) {
      Tensor sums = mean().summands(tensor);
      reduce.run(op, tag, sums, mean().sum(tensor.dtype()), root);
      if (rank == root) {
        mean().finish(sums, tensor);
      }
    } else {
      reduce.run(op, tag, tensor, reduceOp, root);
    }
    op.took(PATH);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    long bytes = tensor.byteSize();
    int tag = enter(Signature.of(OpType.BROADCAST, tensor.dtype(), root, bytes));
    broadcast.run(op, tag, tensor.segment(), bytes, root);
    op.took(PATH);
  }

  @Override
  protected void gather(Operation op, long signature, TensorParts outputs) throws Exception {
    allGather.run(op, enter(signature), outputs);
    op.took(PATH);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    TwoLevelReduceScatter twoLevel = reduceScatter;
    if (twoLevel == null) {
      super.reduceScatter(op, output, inputs, reduceOp);
    } else {
      reduceScatter(op, twoLevel, output, inputs, reduceOp);
    }
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    TwoLevelReduceScatter twoLevel = reduceScatter;
    if (twoLevel == null) {
      super.reduceScatterInto(op, output, input, reduceOp);
      return;
    }
    long numel = output.numel();
    Tensor flat = input.flatten();
    List<Tensor> inputs =
        IntStream.range(0, groups.size())
            .mapToObj(to -> flat.narrow(0, to * numel, numel))
            .toList();
    reduceScatter(op, twoLevel, output, inputs, reduceOp);
  }

  private void reduceScatter(
      Operation op,
      TwoLevelReduceScatter twoLevel,
      Tensor output,
      List<Tensor> inputs,
      ReduceOp reduceOp)
      throws Exception {
    int tag = enter(signature(inputs, reduceOp));
    if (reduceOp.kind() == ReduceOp.Kind.AVG) {
      Tensor sums = mean().sums(output);
      twoLevel.run(op, tag, sums, mean().summands(inputs), mean().sum(output.dtype()));
      mean().finish(sums, output);
    } else {
      twoLevel.run(op, tag, output, inputs, reduceOp);
    }
    op.took(PATH);
  }

  @Override
  public void barrier(Operation op) throws Exception {
    barrier.run(op, enter(Signature.of(OpType.BARRIER)));
    op.took(PATH);
  }

  /** Returns the ranks of each host, as in {@code two levels: [0, 1] [2, 3]}. */
  @Override
  public String toString() {
    return "two levels: " + groups;
  }

  @Override
  public void close() {
    super.close();
    host.close();
  }
}
