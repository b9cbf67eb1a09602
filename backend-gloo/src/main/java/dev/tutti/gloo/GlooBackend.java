package dev.tutti.gloo;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Collectives;
import dev.tutti.gloo.algorithm.SparseAllReduce;
import dev.tutti.gloo.algorithm.WireCollectives;
import dev.tutti.gloo.shm.SymmetricMemories;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.UserMessages;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Staging;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Runs the operations of one rank through memory that all ranks share, where they do, else over
 * sockets.
 */
final class GlooBackend implements Backend {
  private static final String NOT_SHARED =
      "its ranks do not share memory: they are not all ranks of Tutti on one host, or one cannot,"
          + " or "
          + GlooProvider.SHARED_BYTES.name()
          + " is 0";

  /** Connects the ranks. */
  final Transport transport;

  /** Runs the collectives of Gloo's wire. */
  final WireCollectives wire;

  private final UserMessages messages;

  /** Runs the collectives. */
  final Collectives collectives;

  /** Is the symmetric memory of ranks that share memory. */
  final @Nullable SymmetricMemories memories;

  /**
   * Creates the backend of a rank.
   *
   * @param transport connects the ranks
   * @param wire the collectives of Gloo's wire
   * @param collectives what to use where there is something better; closed with this
   * @param memories their symmetric memory, or null where they do not; closed with this
   */
  GlooBackend(
      Transport transport,
      WireCollectives wire,
      Collectives collectives,
      @Nullable SymmetricMemories memories) {
    this.transport = transport;
    this.messages = new UserMessages(transport);
    this.wire = wire;
    this.collectives = collectives;
    this.memories = memories;
  }

  /**
   * Ends a collective, and after it the messages that end because of it; a refusal ends neither.
   */
  private void stop(Operation op, Throwable cause) {
    if (cause instanceof UnsupportedOperationException) {
      return;
    }
    op.fail(cause, PeerLostException.rankIn(cause));
    transport.stop(cause);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    allReduce(op, tensor, reduceOp, AllReduceAlgorithm.AUTO);
  }

  @Override
  public Optional<String> reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return Optional.ofNullable(collectives.reasonAgainst(algorithm, tensor, reduceOp));
  }

  @Override
  public void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    try {
      collectives.allReduce(op, tensor, reduceOp, algorithm);
    } catch (UnsupportedOperationException e) {
      throw e; // all ranks refuse it, and go on
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw new UnsupportedOperationException(
          "sparse tensors can be reduced by SUM only, not " + reduceOp);
    }
    SparseAllReduce.check(tensor);
    try {
      op.completeWith(List.of(collectives.allReduceSparse(op, tensor)));
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    try {
      collectives.reduce(op, tensor, reduceOp, root);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    try {
      collectives.broadcast(op, tensor, root);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    try {
      collectives.allGatherInto(op, output, input);
    } catch (Exception | Error e) {
      stop(op, e);
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
      collectives.gather(op, outputs, input, root);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    try {
      collectives.scatter(op, output, inputs, root);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    try {
      collectives.allToAll(op, outputs, inputs);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    try {
      collectives.reduceScatter(op, output, inputs, reduceOp);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    try {
      collectives.reduceScatterInto(op, output, input, reduceOp);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    try {
      wire.monitoredBarrier(op, waitAllRanks);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public void barrier(Operation op) throws Exception {
    try {
      collectives.barrier(op);
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    if (memories == null) {
      throw new UnsupportedOperationException("allocateSymmetric: " + NOT_SHARED);
    }
    try {
      return memories.allocate(op, byteSize);
    } catch (BackendException e) {
      throw e;
    } catch (Exception | Error e) {
      stop(op, e);
      throw e;
    }
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return memories == null ? Map.of(Feature.SYMMETRIC_MEMORY, NOT_SHARED) : Map.of();
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    messages.send(op, peer, tag, tensor);
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    messages.receive(op, peer, tag, tensor);
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    messages.receiveAny(op, tag, tensor);
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return messages.await(op, deadlineNanos);
  }

  @Override
  public void abort(Throwable cause) {
    transport.abort(cause);
  }

  @Override
  public void close() {
    transport.close();
    try {
      if (memories != null) {
        memories.close();
      }
    } finally {
      collectives.close();
    }
  }
}
