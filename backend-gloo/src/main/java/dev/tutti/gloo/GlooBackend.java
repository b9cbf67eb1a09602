package dev.tutti.gloo;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.BinomialBroadcast;
import dev.tutti.gloo.algorithm.DirectAllToAll;
import dev.tutti.gloo.algorithm.DirectGather;
import dev.tutti.gloo.algorithm.DirectScatter;
import dev.tutti.gloo.algorithm.DisseminationBarrier;
import dev.tutti.gloo.algorithm.MonitoredBarrier;
import dev.tutti.gloo.algorithm.RingAllGather;
import dev.tutti.gloo.algorithm.RingAllReduce;
import dev.tutti.gloo.algorithm.RingReduce;
import dev.tutti.gloo.algorithm.Scratch;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Staging;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Runs the operations of one rank as PyTorch's {@code ProcessGroupGloo} does, message for message.
 */
final class GlooBackend implements Backend {
  private final Transport transport;
  private final RingAllReduce allReduce;
  private final RingReduce reduce;
  private final RingAllGather allGather;
  private final BinomialBroadcast broadcast;
  private final DirectGather gather;
  private final DirectScatter scatter;
  private final DirectAllToAll allToAll;
  private final DisseminationBarrier barrier;
  private final MonitoredBarrier monitoredBarrier;
  private final Scratch inputCopy = new Scratch();

  // Numbers the collectives; has to grow by what PyTorch's counter grows by.
  private int nextTag;

  GlooBackend(Transport transport) {
    Scratch scratch = new Scratch();
    this.transport = transport;
    this.allReduce = new RingAllReduce(transport);
    this.reduce = new RingReduce(transport, scratch);
    this.allGather = new RingAllGather(transport);
    this.broadcast = new BinomialBroadcast(transport);
    this.gather = new DirectGather(transport);
    this.scatter = new DirectScatter(transport);
    this.allToAll = new DirectAllToAll(transport);
    this.barrier = new DisseminationBarrier(transport);
    this.monitoredBarrier = new MonitoredBarrier(transport);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    try {
      allReduce.run(op, nextTag++, tensor, reduceOp);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    try {
      reduce.run(op, nextTag++, tensor, reduceOp, root);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    try {
      broadcast.run(op, nextTag++, tensor.segment(), tensor.byteSize(), root);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    long bytes = input.byteSize();
    MemorySegment memory = output.segment();
    // The input may be this rank's part of the output already.
    MemorySegment.copy(input.segment(), 0, memory, transport.rank() * bytes, bytes);
    try {
      allGather.run(op, nextTag++, memory, bytes);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    Tensor input = Staging.flatten(inputs);
    Tensor output = Staging.allocateLike(outputs);
    allGatherInto(op, output, input);
    // Each rank's contribution is all its inputs, one after the other.
    long numel = input.numel();
    long start = 0;
    for (int i = 0; i < inputs.size(); i++) {
      long count = inputs.get(i).numel();
      for (int rank = 0; rank < transport.size(); rank++) {
        outputs
            .get(i)
            .flatten()
            .narrow(0, rank * count, count)
            .copyFrom(output.narrow(0, rank * numel + start, count));
      }
      start += count;
    }
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    try {
      gather.run(op, nextTag++, outputs, input, root);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    try {
      scatter.run(op, nextTag++, output, inputs, root);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    try {
      allToAll.run(op, nextTag++, outputs, inputs);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  /** Is one all-reduce of each rank's part, as in PyTorch, where Gloo has nothing better. */
  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    for (int rank = 0; rank < inputs.size(); rank++) {
      Tensor reduced = allReduceCopy(op, inputs.get(rank), reduceOp);
      if (rank == transport.rank()) {
        output.copyFrom(reduced);
      }
    }
  }

  /** Is an all-reduce of the whole, as in PyTorch, where Gloo has nothing better. */
  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    Tensor reduced = allReduceCopy(op, input, reduceOp);
    output.copyFrom(reduced.narrow(0, transport.rank() * output.numel(), output.numel()));
  }

  private Tensor allReduceCopy(Operation op, Tensor input, ReduceOp reduceOp) throws Exception {
    MemorySegment memory = inputCopy.atLeast(Math.max(1, input.byteSize()));
    Tensor copy = Tensor.of(memory, input.dtype(), input.numel());
    copy.copyFrom(input);
    allReduce(op, copy, reduceOp);
    return copy;
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    int tag = nextTag;
    nextTag += 2;
    try {
      monitoredBarrier.run(op, tag, waitAllRanks);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void barrier(Operation op) throws Exception {
    try {
      barrier.run(op, nextTag++);
    } catch (Exception | Error e) {
      transport.stop(e);
      throw e;
    }
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    transport.startSend(op, peer, tag, tensor.segment(), tensor.byteSize());
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    transport.startReceive(op, peer, tag, tensor.segment(), tensor.byteSize());
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    transport.startReceiveAny(op, tag, tensor.segment(), tensor.byteSize());
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return transport.await(op, deadlineNanos);
  }

  @Override
  public void abort(Throwable cause) {
    transport.abort(cause);
  }

  @Override
  public void close() {
    transport.close();
  }
}
