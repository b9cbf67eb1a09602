package dev.tutti.contracts.fuzz;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.contracts.ContractSubject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The tensors of one step on one rank, and what they must hold afterwards. */
abstract class StepTensors {
  /*
   * The distance between the slots of the parts of a step that have tensors; each part has its own
   * slots for data and layouts.
   */
  static final int OUTPUT = 1000;

  final ContractSubject subject;
  final ProgramReference reference;
  final Step step;
  final ProcessGroup group;
  final boolean async;
  final CallOptions options;
  final int rank;
  final int size;
  final List<Runnable> checks = new ArrayList<>();
  long elements;

  /**
   * Creates none yet.
   *
   * @param group the step's
   * @param async whether the calls return before they are done
   */
  StepTensors(
      ContractSubject subject,
      ProgramReference reference,
      Step step,
      ProcessGroup group,
      boolean async) {
    this.subject = subject;
    this.reference = reference;
    this.step = step;
    this.group = group;
    this.async = async;
    this.options = async ? CallOptions.ASYNC : CallOptions.DEFAULT;
    this.rank = group.rank();
    this.size = group.size();
  }

  Step step() {
    return step;
  }

  /** Returns the total number of elements of all tensors. */
  long elements() {
    return elements;
  }

  /** Compares the results; all works must have ended. */
  void check() {
    checks.forEach(Runnable::run);
  }

  /**
   * Creates a tensor whose elements must be as expected afterwards, or may be anything if that is
   * null.
   */
  Tensor tensor(String name, int slot, int count, byte[] content, byte @Nullable [] after) {
    return tensor(name, slot, 1, count, content, after);
  }

  /** Creates a tensor with one row, or with several if the number of elements allows it. */
  Tensor shaped(String name, int slot, int count, byte[] content, byte @Nullable [] after) {
    long die = step.views() ? reference.die(step, slot, -1) % 3 : 0;
    int rows = die == 1 && count % 2 == 0 ? 2 : die == 2 && count % 3 == 0 ? 3 : 1;
    return tensor(name, slot, rows, count / rows, content, after);
  }

  Tensor tensor(
      String name, int slot, int rows, int columns, byte[] content, byte @Nullable [] after) {
    Canary canary =
        new Canary(
            name + " of rank " + rank + " in group " + step.group(),
            subject,
            layout(slot),
            step.dtype(),
            rows,
            columns,
            content);
    elements += (long) rows * columns;
    checks.add(() -> canary.check(after));
    return canary.tensor();
  }

  Canary.Layout layout(int slot) {
    if (!step.views()) {
      return Canary.Layout.CONTIGUOUS;
    }
    boolean strided =
        subject.isOnHost()
            || subject.capabilities().has(dev.tutti.Capabilities.Feature.STRIDED_TENSORS);
    List<Canary.Layout> layouts =
        Arrays.stream(Canary.Layout.values())
            .filter(l -> strided || l.isContiguous())
            .filter(l -> subject.isOnHost() || l != Canary.Layout.HEAP)
            .toList();
    return layouts.get((int) (reference.die(step, slot, rank) % layouts.size()));
  }

  Tensor input(String name, int slot, int count, byte[] content) {
    return tensor(name, slot, count, content, content);
  }

  Tensor output(String name, int slot, int count, byte[] after) {
    return tensor(name, OUTPUT + slot, count, blank(count), after);
  }

  byte[] blank(int count) {
    byte[] content = new byte[count * step.dtype().byteSize()];
    Arrays.fill(content, (byte) (step.dtype() == DType.BOOL ? 1 : 0x5a));
    return content;
  }

  byte[] moved(int slot, int from, int count) {
    return reference.moved(step, slot, from, count);
  }

  byte[] brought(int slot, int count) {
    return reference.brought(step, slot, rank, size, count);
  }

  byte[] reduced(int slot, int count) {
    return reference.reduced(step, slot, size, count);
  }

  List<Tensor> outputs(IntFunction<byte[]> expected) {
    List<Tensor> outputs = new ArrayList<>();
    for (int from = 0; from < size; from++) {
      byte[] content = expected.apply(from);
      outputs.add(
          output("outputs[" + from + "]", from, content.length / step.dtype().byteSize(), content));
    }
    return outputs;
  }

  List<Tensor> inputs(IntFunction<byte[]> brought) {
    List<Tensor> inputs = new ArrayList<>();
    for (int to = 0; to < size; to++) {
      byte[] content = brought.apply(to);
      inputs.add(
          input("inputs[" + to + "]", to, content.length / step.dtype().byteSize(), content));
    }
    return inputs;
  }

  byte[] gathered(int slot, int count) {
    return ProgramReference.joined(
        IntStream.range(0, size).mapToObj(from -> moved(slot, from, count)).toArray(byte[][]::new));
  }

  /** Returns this rank's contribution to a reduction of equal parts. */
  byte[] broughtParts(int slot, int count) {
    return ProgramReference.joined(
        IntStream.range(0, size)
            .mapToObj(to -> brought(slot * size + to, count))
            .toArray(byte[][]::new));
  }

  Tensor sent(int slot, int count) {
    byte[] content = moved(slot, rank, count);
    return shaped("tensor sent", slot, count, content, content);
  }

  Tensor received(int slot, int from, int count) {
    return shaped(
        "tensor received from " + from, slot, count, blank(count), moved(slot, from, count));
  }

  static void require(boolean condition, String otherwise) {
    if (!condition) {
      throw new AssertionError(otherwise);
    }
  }
}
