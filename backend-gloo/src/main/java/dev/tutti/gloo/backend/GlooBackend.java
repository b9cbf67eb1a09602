package dev.tutti.gloo.backend;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.SparseAllReduce;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.spi.Backend;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Staging;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Runs the operations of one rank of a Gloo group. It hands operations on tensors of a device to
 * the backend that serves the device, and ends the messages of a group whose collective failed.
 * Subclasses run the collectives on host tensors, one for each way of communicating between ranks.
 */
public abstract class GlooBackend implements Backend {
  /** The setting that determines how much memory the ranks of a host share. */
  public static final String SHARED_BYTES = "TUTTI_GLOO_SHARED_BYTES";

  private static final String NOT_SHARED =
      "its ranks do not share memory: they are not all Tutti ranks on one host, or one of them"
          + " cannot share memory, or "
          + SHARED_BYTES
          + " is 0";

  private final Wire wire;
  private @Nullable DeviceBackends devices;

  /** Creates the backend of a rank. */
  protected GlooBackend(Wire wire) {
    this.wire = wire;
  }

  /** Sets the backends that serve tensors of devices; called once, before this backend is used. */
  public final void serveDevices(DeviceBackends newDevices) {
    devices = newDevices;
    newDevices.open(this);
  }

  /**
   * Begins a collective on the sockets.
   *
   * @param signature the values the ranks must agree on
   * @return the number of the collective
   */
  protected final int next(long signature) {
    return wire.next(signature);
  }

  /** Sums a sparse tensor that has been checked, and returns the sum, coalesced. */
  protected abstract Tensor sumSparse(Operation op, Tensor tensor) throws Exception;

  /** Returns why an all-reduce cannot use an algorithm that is not AUTO, or null if it can. */
  protected abstract @Nullable String reason(
      RequestedAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp);

  /**
   * Runs an operation. A failure ends a collective, and then the messages that end because of it; a
   * refusal ends neither, since all ranks refuse and continue.
   */
  @Override
  public final void run(Operation op) throws Exception {
    try {
      Tensor first = op.call().first();
      if (first == null || first.device().isCpu()) {
        Backend.super.run(op);
      } else {
        of(first.device()).run(op);
      }
    } catch (UnsupportedOperationException e) {
      throw e;
    } catch (Exception | Error e) {
      boolean isRefused = op.type() == OpType.ALLOCATE_SYMMETRIC && e instanceof BackendException;
      if (!isRefused && !op.type().isPointToPoint()) {
        op.fail(e, PeerLostException.rankIn(e));
        wire.transport().stop(e);
      }
      throw e;
    }
  }

  private Backend of(Device device) {
    DeviceBackends others = devices;
    if (others == null) {
      throw new UnsupportedOperationException("no module serves " + device + " in Gloo groups");
    }
    return others.of(device, this);
  }

  @Override
  public final @Nullable DeviceEvent callerEvent(Device device) {
    return of(device).callerEvent(device);
  }

  @Override
  public final long firstNan(Operation op, Tensor tensor) throws Exception {
    return of(tensor.device()).firstNan(op, tensor);
  }

  @Override
  public final Optional<String> reasonAgainst(String algorithm, Tensor tensor, ReduceOp reduceOp) {
    return tensor.device().isCpu()
        ? Optional.ofNullable(reason(RequestedAlgorithm.of(algorithm), tensor, reduceOp))
        : of(tensor.device()).reasonAgainst(algorithm, tensor, reduceOp);
  }

  @Override
  public final void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    allReduce(op, tensor, reduceOp, RequestedAlgorithm.of(op.call().algorithm()));
  }

  /** Reduces a dense tensor over all ranks, in place, with the algorithm that was requested. */
  protected abstract void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, RequestedAlgorithm algorithm)
      throws Exception;

  @Override
  public final void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp)
      throws Exception {
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw new UnsupportedOperationException(
          "sparse tensors can be reduced by SUM only, not " + reduceOp);
    }
    SparseAllReduce.check(tensor);
    op.completeWith(List.of(sumSparse(op, tensor)));
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    Tensor input = Staging.flatten(inputs);
    Tensor output = Staging.allocateLike(outputs);
    allGatherInto(op, output, input);
    // A rank's contribution consists of all its inputs, one after the other.
    long numel = input.numel();
    long start = 0;
    for (int i = 0; i < inputs.size(); i++) {
      long count = inputs.get(i).numel();
      for (int rank = 0; rank < wire.transport().size(); rank++) {
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
  public final void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    wire.monitoredBarrier(op, waitAllRanks);
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    throw new UnsupportedOperationException("allocateSymmetric: " + NOT_SHARED);
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return Map.of(Feature.SYMMETRIC_MEMORY, NOT_SHARED);
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    wire.messages().send(op, peer, tag, tensor);
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    wire.messages().receive(op, peer, tag, tensor);
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    wire.messages().receiveAny(op, tag, tensor);
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return wire.messages().await(op, deadlineNanos);
  }

  @Override
  public final List<Integer> unreachedPeers(Duration limit) {
    return wire.transport().unreachedPeers(limit);
  }

  @Override
  public final void abort(Throwable cause) {
    DeviceBackends others = devices;
    if (others != null) {
      others.abort(cause);
    }
    wire.transport().abort(cause);
  }

  @Override
  public void close() {
    DeviceBackends others = devices;
    if (others != null) {
      others.close();
    }
    wire.transport().close();
  }
}
