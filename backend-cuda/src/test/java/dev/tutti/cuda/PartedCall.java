package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** A collective that Gloo groups perform part by part for CUDA tensors. */
public enum PartedCall {
  ALL_REDUCE(
      (group, memory, numel, _) -> {
        Tensor tensor = memory.next(numel);
        group.allReduce(tensor);
        return List.of(tensor);
      }),
  ALL_REDUCE_COALESCED(
      (group, memory, numel, _) -> {
        List<Tensor> tensors = sizes(numel).mapToObj(memory::next).toList();
        group.allReduceCoalesced(tensors, ReduceOp.SUM, CallOptions.DEFAULT);
        return tensors;
      }),
  REDUCE(
      (group, memory, numel, _) -> {
        Tensor tensor = memory.next(numel);
        group.reduce(tensor, ReduceOp.SUM, root(group));
        return group.rank() == root(group) ? List.of(tensor) : List.of();
      }),
  BROADCAST(
      (group, memory, numel, _) -> {
        Tensor tensor = memory.next(numel);
        group.broadcast(tensor, root(group));
        return List.of(tensor);
      }),
  ALL_GATHER(
      (group, memory, numel, inPlace) -> {
        List<Tensor> outputs = list(memory, group.size(), numel);
        Tensor input = inPlace ? outputs.get(group.rank()) : memory.next(numel);
        group.allGather(outputs, input);
        return plus(outputs, List.of(input));
      }),
  ALL_GATHER_INTO(
      (group, memory, numel, inPlace) -> {
        Tensor output = memory.next(numel * group.size());
        Tensor input = inPlace ? own(group, output) : memory.next(numel);
        group.allGatherInto(output, input);
        return List.of(output, input);
      }),
  ALL_GATHER_INTO_COALESCED(
      (group, memory, numel, inPlace) -> {
        List<Tensor> outputs = sizes(numel).mapToObj(n -> memory.next(n * group.size())).toList();
        List<Tensor> inputs =
            inPlace
                ? outputs.stream().map(output -> own(group, output)).toList()
                : sizes(numel).mapToObj(memory::next).toList();
        group.allGatherIntoCoalesced(outputs, inputs, CallOptions.DEFAULT);
        return plus(outputs, inputs);
      }),
  GATHER(
      (group, memory, numel, inPlace) -> {
        boolean isRoot = group.rank() == root(group);
        List<Tensor> outputs = list(memory, isRoot ? group.size() : 0, numel);
        Tensor input = isRoot && inPlace ? outputs.get(group.rank()) : memory.next(numel);
        group.gather(outputs, input, root(group));
        return plus(outputs, List.of(input));
      }),
  SCATTER(
      (group, memory, numel, inPlace) -> {
        boolean isRoot = group.rank() == root(group);
        List<Tensor> inputs = list(memory, isRoot ? group.size() : 0, numel);
        Tensor output = isRoot && inPlace ? inputs.get(group.rank()) : memory.next(numel);
        group.scatter(output, inputs, root(group));
        return plus(inputs, List.of(output));
      }),
  REDUCE_SCATTER(
      (group, memory, numel, inPlace) -> {
        List<Tensor> inputs = list(memory, group.size(), numel);
        Tensor output = inPlace ? inputs.get(group.rank()) : memory.next(numel);
        group.reduceScatter(output, inputs, ReduceOp.SUM);
        return plus(inputs, List.of(output));
      }),
  REDUCE_SCATTER_INTO(
      (group, memory, numel, inPlace) -> {
        Tensor input = memory.next(numel * group.size());
        Tensor output = inPlace ? own(group, input) : memory.next(numel);
        group.reduceScatterInto(output, input, ReduceOp.AVG);
        return List.of(input, output);
      }),
  REDUCE_SCATTER_INTO_COALESCED(
      (group, memory, numel, inPlace) -> {
        List<Tensor> inputs = sizes(numel).mapToObj(n -> memory.next(n * group.size())).toList();
        List<Tensor> outputs =
            inPlace
                ? inputs.stream().map(input -> own(group, input)).toList()
                : sizes(numel).mapToObj(memory::next).toList();
        group.reduceScatterIntoCoalesced(outputs, inputs, ReduceOp.SUM, CallOptions.DEFAULT);
        return plus(inputs, outputs);
      });

  @SuppressWarnings("ImmutableEnumChecker")
  private final Body body;

  PartedCall(Body body) {
    this.body = body;
  }

  /** Creates tensors and calls an operation with them. */
  private interface Body {
    List<Tensor> run(ProcessGroup group, Memory memory, long numel, boolean inPlace);
  }

  /** Creates tensors with arbitrary contents, the same in every run. */
  public interface Memory {
    Tensor next(long numel);
  }

  /**
   * Calls the operation with new tensors.
   *
   * @param group the group of the call
   * @param memory creates the tensors
   * @param numel the number of elements of a rank's part
   * @param inPlace whether the input is a part of the output, or vice versa
   * @return all tensors of the call whose contents are defined
   */
  public List<Tensor> run(ProcessGroup group, Memory memory, long numel, boolean inPlace) {
    return body.run(group, memory, numel, inPlace);
  }

  /** Returns whether the call can be made in place, too. */
  public boolean canBeInPlace() {
    return switch (this) {
      case ALL_REDUCE, ALL_REDUCE_COALESCED, REDUCE, BROADCAST -> false;
      default -> true;
    };
  }

  private static LongStream sizes(long numel) {
    return LongStream.of(numel / 3, 0, numel - numel / 3, 1);
  }

  private static int root(ProcessGroup group) {
    return group.size() / 2;
  }

  private static List<Tensor> list(Memory memory, int count, long numel) {
    return IntStream.range(0, count).mapToObj(_ -> memory.next(numel)).toList();
  }

  private static Tensor own(ProcessGroup group, Tensor all) {
    long numel = all.numel() / group.size();
    return all.narrow(0, group.rank() * numel, numel);
  }

  private static List<Tensor> plus(List<Tensor> some, List<Tensor> others) {
    List<Tensor> all = new ArrayList<>(some);
    all.addAll(others);
    return all;
  }
}
