package dev.tutti.fake;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Passes all calls on to another backend, and lets a subclass see them before. */
abstract class DecoratedBackend implements Backend {
  final Backend inner;

  DecoratedBackend(Backend inner) {
    this.inner = inner;
  }

  /** Sees a collective; what it throws takes the place of the call. */
  abstract void before(Operation op, Call call) throws Exception;

  /** Sees a send or receive and runs it, now or later. */
  abstract void start(Operation op, Call call, Runnable start);

  /** Returns the same in front of the backend of a group of some of the ranks. */
  abstract DecoratedBackend around(Backend subgroup, BackendContext context);

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    before(op, Call.inPlace(op, tensor).withRoot(root));
    inner.broadcast(op, tensor, root);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    before(op, Call.inPlace(op, tensor).withOp(reduceOp));
    inner.allReduce(op, tensor, reduceOp);
  }

  @Override
  public void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    before(op, Call.inPlace(op, tensor).withOp(reduceOp));
    inner.allReduce(op, tensor, reduceOp, algorithm);
  }

  @Override
  public Optional<String> reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return inner.reasonAgainst(algorithm, tensor, reduceOp);
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    before(op, Call.of(op, List.of(tensor), List.of()).withOp(reduceOp));
    inner.allReduceSparse(op, tensor, reduceOp);
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    before(op, Call.of(op, tensors, tensors).withOp(reduceOp));
    inner.allReduceCoalesced(op, tensors, reduceOp);
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    before(op, Call.inPlace(op, tensor).withOp(reduceOp).withRoot(root));
    inner.reduce(op, tensor, reduceOp, root);
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    before(op, Call.of(op, List.of(input), outputs));
    inner.allGather(op, outputs, input);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    before(op, Call.of(op, List.of(input), List.of(output)));
    inner.allGatherInto(op, output, input);
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    before(op, Call.of(op, inputs, outputs));
    inner.allGatherIntoCoalesced(op, outputs, inputs);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    before(op, Call.of(op, List.of(input), outputs).withRoot(root));
    inner.gather(op, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    before(op, Call.of(op, inputs, List.of(output)).withRoot(root));
    inner.scatter(op, output, inputs, root);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    before(op, Call.of(op, inputs, List.of(output)).withOp(reduceOp));
    inner.reduceScatter(op, output, inputs, reduceOp);
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    before(op, Call.of(op, List.of(input), List.of(output)).withOp(reduceOp));
    inner.reduceScatterInto(op, output, input, reduceOp);
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    before(op, Call.of(op, inputs, outputs).withOp(reduceOp));
    inner.reduceScatterIntoCoalesced(op, outputs, inputs, reduceOp);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    before(op, Call.of(op, inputs, outputs));
    inner.allToAll(op, outputs, inputs);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    before(op, Call.of(op, List.of(input), List.of(output)));
    inner.allToAllSingle(op, output, input, outputSplits, inputSplits);
  }

  @Override
  public void barrier(Operation op) throws Exception {
    before(op, Call.of(op, List.of(), List.of()));
    inner.barrier(op);
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    before(op, Call.of(op, List.of(), List.of()));
    inner.monitoredBarrier(op, waitAllRanks);
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    before(op, Call.symmetric(op, byteSize, null));
    return inner.allocateSymmetric(op, byteSize);
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    Call call = Call.of(op, List.of(tensor), List.of()).withRoot(peer).withTag(tag);
    start(op, call, () -> inner.send(op, tensor, peer, tag));
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    Call call = Call.of(op, List.of(), List.of(tensor)).withRoot(peer).withTag(tag);
    start(op, call, () -> inner.recv(op, tensor, peer, tag));
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    Call call = Call.of(op, List.of(), List.of(tensor)).withTag(tag);
    start(op, call, () -> inner.recvAnySource(op, tensor, tag));
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return inner.await(op, deadlineNanos);
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
  public void abort(Throwable cause) {
    inner.abort(cause);
  }

  @Override
  public void close() {
    inner.close();
  }
}
