package dev.tutti.fake;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Forwards all calls to another backend; a subclass intercepts the operations. */
abstract class DecoratedBackend implements Backend {
  final Backend inner;

  DecoratedBackend(Backend inner) {
    this.inner = inner;
  }

  /** Intercepts an operation, and has the inner backend run it, or start it now or later. */
  @Override
  public abstract void run(Operation op) throws Exception;

  /** Returns a decorator of the same kind for the backend of a group of some of the ranks. */
  abstract DecoratedBackend around(Backend subgroup, BackendContext context);

  @Override
  public Optional<String> reasonAgainst(String algorithm, Tensor tensor, ReduceOp reduceOp) {
    return inner.reasonAgainst(algorithm, tensor, reduceOp);
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return inner.await(op, deadlineNanos);
  }

  @Override
  public long firstNan(Operation op, Tensor tensor) throws Exception {
    return inner.firstNan(op, tensor);
  }

  @Override
  public @Nullable DeviceEvent callerEvent(Device device) {
    return inner.callerEvent(device);
  }

  @Override
  public boolean hasForeignRanks() {
    return inner.hasForeignRanks();
  }

  @Override
  public @Nullable Backend createSubgroup(BackendContext context, List<Integer> ranks)
      throws Exception {
    Backend made = inner.createSubgroup(context, ranks);
    return made == null ? null : around(made, context);
  }

  @Override
  public void passSubgroup(List<Integer> ranks, long deadlineNanos) {
    inner.passSubgroup(ranks, deadlineNanos);
  }

  @Override
  public List<Integer> unreachedPeers(Duration limit) {
    return inner.unreachedPeers(limit);
  }

  @Override
  public String likelyCause(Operation op) {
    return inner.likelyCause(op);
  }

  @Override
  public void beginBatch() {
    inner.beginBatch();
  }

  @Override
  public void endBatch() {
    inner.endBatch();
  }

  @Override
  public Map<Capabilities.Feature, String> missingFeatures() {
    return inner.missingFeatures();
  }

  @Override
  public Optional<String> reasonAgainstReconfigure() {
    return inner.reasonAgainstReconfigure();
  }

  @Override
  public boolean takesBarriers() {
    return inner.takesBarriers();
  }

  @Override
  public void abort(Throwable cause) {
    inner.abort(cause);
  }

  @Override
  public void close() {
    inner.close();
  }
}
