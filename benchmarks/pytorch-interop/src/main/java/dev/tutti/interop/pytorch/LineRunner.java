package dev.tutti.interop.pytorch;

import static dev.tutti.interop.pytorch.LineTensors.sum;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/** Runs one line on a rank of Tutti. */
final class LineRunner {
  private final ProcessGroup group;
  private final Line line;

  LineRunner(ProcessGroup group, Line line) {
    this.group = group;
    this.line = line;
  }

  /**
   * Runs the line.
   *
   * @return what it leaves on this rank, little-endian
   */
  byte[] run() {
    if (line.op().equals("barrier")) {
      group.barrier();
      return new byte[0];
    }
    if (line.op().equals("monitored_barrier")) {
      group.monitoredBarrier(Duration.ofSeconds(20), MissingRanks.FIRST);
      return new byte[0];
    }
    LineTensors tensors = new LineTensors(group, line);
    LineMessages messages = new LineMessages(group, line, tensors);
    switch (line.op()) {
      case "exchange" -> messages.exchange();
      case "ring" -> messages.ring();
      case "anysource" -> messages.anySource();
      default -> collective(tensors);
    }
    return tensors.bytes();
  }

  private void collective(LineTensors tensors) {
    switch (line.op()) {
      case "allreduce" -> {
        Tensor tensor = tensors.toReduce(line.number(3));
        group.allReduce(tensor, op());
        tensors.result(tensor);
      }
      case "allreduce_coalesced" -> {
        long[] counts = line.counts(3);
        List<Tensor> all = tensors.split(tensors.toReduce(sum(counts)), counts);
        group.allReduceCoalesced(all, op(), CallOptions.DEFAULT);
        tensors.results(all);
      }
      case "allreduce_sparse" -> allReduceSparse(tensors);
      case "reduce" -> {
        Tensor tensor = tensors.toReduce(line.number(3));
        group.reduce(tensor, op(), line.root());
        if (isRoot()) {
          tensors.result(tensor);
        }
      }
      case "reduce_scatter" -> {
        Tensor output = tensors.empty(line.number(3));
        group.reduceScatter(output, tensors.parts(allToReduce(tensors), line.number(3)), op());
        tensors.result(output);
      }
      case "reduce_scatter_base" -> {
        Tensor output = tensors.empty(line.number(3));
        group.reduceScatterInto(output, allToReduce(tensors), op());
        tensors.result(output);
      }
      case "reduce_scatter_tensor_coalesced" -> reduceScatterCoalesced(tensors);
      case "broadcast" -> {
        Tensor tensor = isRoot() ? tensors.toMove(line.number(2)) : tensors.empty(line.number(2));
        group.broadcast(tensor, line.root());
        tensors.result(tensor);
      }
      case "allgather" -> {
        List<Tensor> outputs = tensors.emptyForAll(line.number(2));
        group.allGather(outputs, tensors.toMove(line.number(2)));
        tensors.results(outputs);
      }
      case "allgather_base" -> {
        Tensor output = tensors.empty((long) line.number(2) * group.size());
        group.allGatherInto(output, tensors.toMove(line.number(2)));
        tensors.result(output);
      }
      case "allgather_into_tensor_coalesced" -> tensors.results(allGatherCoalesced(tensors));
      case "allgather_coalesced" -> {
        List<Tensor> gathered = allGatherCoalesced(tensors);
        long[] counts = line.counts(2);
        for (int rank = 0; rank < group.size(); rank++) {
          for (int i = 0; i < counts.length; i++) {
            tensors.result(gathered.get(i).narrow(0, rank * counts[i], counts[i]).copy());
          }
        }
      }
      case "gather" -> {
        List<Tensor> outputs = isRoot() ? tensors.emptyForAll(line.number(2)) : List.of();
        group.gather(outputs, tensors.toMove(line.number(2)), line.root());
        tensors.results(outputs);
      }
      case "scatter" -> {
        Tensor output = tensors.empty(line.number(2));
        List<Tensor> inputs =
            isRoot() ? tensors.parts(allToMove(tensors), line.number(2)) : List.of();
        group.scatter(output, inputs, line.root());
        tensors.result(output);
      }
      case "alltoall" -> {
        List<Tensor> outputs = tensors.emptyForAll(line.number(2));
        group.allToAll(outputs, tensors.parts(allToMove(tensors), line.number(2)));
        tensors.results(outputs);
      }
      case "alltoall_base" -> allToAllSingle(tensors);
      default -> throw new IllegalArgumentException("no such operation: " + line);
    }
  }

  private void allReduceSparse(LineTensors tensors) {
    int rows = line.number(3);
    int columns = line.number(4);
    int stored = line.number(5);
    Tensor indices = Tensor.allocate(DType.INT64, 1, stored);
    for (int i = 0; i < stored; i++) {
      indices.setLong(i, (long) (group.rank() + 3 * i) % rows);
    }
    Tensor values = tensors.toReduce((long) stored * columns).view(stored, columns);
    Tensor sum =
        group
            .allReduce(
                Tensor.sparse(indices, values, rows, columns), ReduceOp.SUM, CallOptions.DEFAULT)
            .result()
            .getFirst();
    Tensor dense = Tensor.allocate(tensors.type(), rows, columns);
    for (long entry = 0; entry < sum.indices().size(1); entry++) {
      dense.select(0, sum.indices().getLong(entry)).copyFrom(sum.values().select(0, entry));
    }
    tensors.result(dense);
  }

  private void reduceScatterCoalesced(LineTensors tensors) {
    long[] counts = line.counts(3);
    long[] whole = LongStream.of(counts).map(count -> count * group.size()).toArray();
    List<Tensor> inputs = tensors.split(tensors.toReduce(sum(whole)), whole);
    List<Tensor> outputs = LongStream.of(counts).mapToObj(tensors::empty).toList();
    group.reduceScatterIntoCoalesced(outputs, inputs, op(), CallOptions.DEFAULT);
    tensors.results(outputs);
  }

  private List<Tensor> allGatherCoalesced(LineTensors tensors) {
    long[] counts = line.counts(2);
    List<Tensor> inputs = tensors.split(tensors.toMove(sum(counts)), counts);
    List<Tensor> outputs =
        LongStream.of(counts).mapToObj(count -> tensors.empty(count * group.size())).toList();
    group.allGatherIntoCoalesced(outputs, inputs, CallOptions.DEFAULT);
    return outputs;
  }

  private void allToAllSingle(LineTensors tensors) {
    if (!line.has("splits")) {
      Tensor output = tensors.empty((long) line.number(2) * group.size());
      group.allToAllSingle(output, allToMove(tensors));
      tensors.result(output);
      return;
    }
    long[][] splits = line.splits();
    long[] sent = splits[group.rank()];
    long[] received = Arrays.stream(splits).mapToLong(row -> row[group.rank()]).toArray();
    Tensor output = tensors.empty(sum(received));
    Tensor input = tensors.toMove(sum(sent));
    group.allToAllSingle(output, input, received, sent);
    tensors.result(output);
  }

  private Tensor allToReduce(LineTensors tensors) {
    return tensors.toReduce((long) line.number(3) * group.size());
  }

  private Tensor allToMove(LineTensors tensors) {
    return tensors.toMove((long) line.number(2) * group.size());
  }

  private ReduceOp op() {
    return ReduceOp.ofName(line.word(2));
  }

  private boolean isRoot() {
    return group.rank() == line.root();
  }
}
