package dev.tutti.cuda.gloo;

import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.InnerOperation;
import dev.tutti.spi.Backend;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Runs a Gloo group's collectives on CUDA tensors with gaps: on copies without gaps on the device,
 * in a stream between that of the caller and those of {@link GlooCudaBackend}, which has all
 * others.
 */
public final class GlooStridedBackend implements Backend {
  private final GlooCudaBackend dense;
  private final int rank;

  public GlooStridedBackend(GlooCudaBackend dense, int rank) {
    this.dense = dense;
    this.rank = rank;
  }

  /** Returns the backend of tensors without gaps. */
  public GlooCudaBackend dense() {
    return dense;
  }

  /** Runs an operation on tensors without gaps. */
  private interface DenseCall {
    void run(Operation op, DenseStandIns tensors) throws Exception;
  }

  private static List<Tensor> all(List<Tensor> some, Tensor one) {
    return Stream.concat(some.stream(), Stream.of(one)).toList();
  }

  private static List<Tensor> all(List<Tensor> some, List<Tensor> others) {
    return Stream.concat(some.stream(), others.stream()).toList();
  }

  private void run(Operation op, List<Tensor> tensors, DenseCall call) throws Exception {
    List<Tensor> strided = new ArrayList<>(tensors);
    strided.removeIf(Tensor::isContiguous);
    if (strided.isEmpty()) {
      call.run(op, DenseStandIns.NONE);
      return;
    }
    HostWork work = dense.work(tensors.get(0).device().index());
    work.requireUsable(strided);
    InnerOperation inner = new InnerOperation(op);
    CudaStream copies = work.copies();
    HostWork.begin(op, work.device(), copies::waitFor);
    work.order(copies);
    try (CudaStream.Scope _ = copies.use();
        DenseStandIns standIns = new DenseStandIns(() -> copies)) {
      call.run(inner, standIns);
      CudaEvent written = inner.cudaEvent();
      if (standIns.hasOutputs()) {
        if (written != null) {
          copies.waitFor(written);
        }
        standIns.copyBack();
        work.enqueued(op, copies);
      } else if (written != null) {
        op.enqueued(written);
      }
    }
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    run(
        op,
        List.of(tensor),
        (inner, standIns) ->
            dense.broadcast(
                inner, rank == root ? standIns.input(tensor) : standIns.output(tensor), root));
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    run(
        op,
        List.of(tensor),
        (inner, standIns) -> dense.allReduce(inner, standIns.inOut(tensor), reduceOp));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    run(
        op,
        tensors,
        (inner, standIns) -> dense.allReduceCoalesced(inner, standIns.inOuts(tensors), reduceOp));
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    run(
        op,
        List.of(tensor),
        (inner, standIns) ->
            dense.reduce(
                inner,
                rank == root ? standIns.inOut(tensor) : standIns.input(tensor),
                reduceOp,
                root));
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    run(
        op,
        all(outputs, input),
        (inner, standIns) ->
            dense.allGather(inner, standIns.outputs(outputs), standIns.input(input)));
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    run(
        op,
        List.of(output, input),
        (inner, standIns) ->
            dense.allGatherInto(inner, standIns.output(output), standIns.input(input)));
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    run(
        op,
        all(outputs, inputs),
        (inner, standIns) ->
            dense.allGatherIntoCoalesced(
                inner, standIns.outputs(outputs), standIns.inputs(inputs)));
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    run(
        op,
        all(outputs, input),
        (inner, standIns) ->
            dense.gather(inner, standIns.outputs(outputs), standIns.input(input), root));
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    run(
        op,
        all(inputs, output),
        (inner, standIns) ->
            dense.scatter(inner, standIns.output(output), standIns.inputs(inputs), root));
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    run(
        op,
        all(inputs, output),
        (inner, standIns) ->
            dense.reduceScatter(inner, standIns.output(output), standIns.inputs(inputs), reduceOp));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    run(
        op,
        List.of(output, input),
        (inner, standIns) ->
            dense.reduceScatterInto(
                inner, standIns.output(output), standIns.input(input), reduceOp));
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    run(
        op,
        all(outputs, inputs),
        (inner, standIns) ->
            dense.reduceScatterIntoCoalesced(
                inner, standIns.outputs(outputs), standIns.inputs(inputs), reduceOp));
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    run(
        op,
        all(outputs, inputs),
        (inner, standIns) ->
            dense.allToAll(inner, standIns.outputs(outputs), standIns.inputs(inputs)));
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    run(
        op,
        List.of(output, input),
        (inner, standIns) ->
            dense.allToAllSingle(
                inner, standIns.output(output), standIns.input(input), outputSplits, inputSplits));
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    dense.allReduceSparse(op, tensor, reduceOp);
  }

  @Override
  public DeviceEvent callerEvent(Device device) {
    return dense.callerEvent(device);
  }

  @Override
  public void abort(Throwable cause) {
    dense.abort(cause);
  }

  @Override
  public void close() {
    dense.close();
  }
}
