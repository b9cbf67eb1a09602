package dev.tutti.gradients;

import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The parameters of a reducer, with their names. */
final class ParameterList {
  private static final int NAMED = 8;

  private final List<Tensor> tensors;
  private final @Nullable List<String> names;

  ParameterList(List<Tensor> tensors, @Nullable List<String> names) {
    this.tensors = List.copyOf(tensors);
    this.names = names;
    if (tensors.isEmpty()) {
      throw new IllegalArgumentException("there must be at least one parameter");
    }
    if (names != null && names.size() != tensors.size()) {
      throw new IllegalArgumentException(
          names.size() + " names do not match " + tensors.size() + " parameters");
    }
    for (int i = 0; i < tensors.size(); i++) {
      Tensor tensor = tensors.get(i);
      if (tensor.isSparse() || !ReduceOp.AVG.isDefinedOn(tensor.dtype())) {
        throw new IllegalArgumentException(
            describe(i) + " is " + tensor.describe() + ", for which no mean is defined");
      }
    }
  }

  /** Returns the number of elements of some parameters. */
  long numel(List<Integer> indices) {
    return indices.stream().mapToLong(index -> get(index).numel()).sum();
  }

  int count() {
    return tensors.size();
  }

  Tensor get(int index) {
    return tensors.get(index);
  }

  List<Tensor> all() {
    return tensors;
  }

  /**
   * Checks that the parameters, the group and the options match.
   *
   * @throws IllegalArgumentException if not
   */
  void requireFitting(ProcessGroup group, ReducerOptions options) {
    if (!group.backends().containsKey(Device.CPU.type())) {
      throw new IllegalArgumentException(
          "the group has no backend for the host, which ranks need to compare their parameters; its"
              + " backends are "
              + group.backends());
    }
    options.hook().requireSupported(tensors);
    List<Tensor> gradients = options.gradients();
    if (gradients != null) {
      requireAlike(gradients);
    }
    boolean digests = options.digestSteps() > 0 && options.digested() == null;
    for (int i = 0; i < count(); i++) {
      if (digests && !get(i).device().isCpu()) {
        throw new IllegalArgumentException(
            describe(i)
                + " is on "
                + get(i).device()
                + ", but a digest reads host memory; give copies to ReducerOptions.withDigested");
      }
      if (options.divisor() == ReducerOptions.Divisor.ACTIVE_RANKS
          && !get(i).dtype().isFloatingPoint()
          && !get(i).dtype().isComplex()) {
        throw new IllegalArgumentException(
            describe(i)
                + " is "
                + get(i).describe()
                + ", which cannot be divided by the number of active ranks");
      }
    }
  }

  /** Checks that the gradients match the parameters in number, type, shape and device. */
  void requireAlike(List<Tensor> gradients) {
    if (gradients.size() != tensors.size()) {
      throw new IllegalArgumentException(
          gradients.size() + " gradients do not match " + tensors.size() + " parameters");
    }
    for (int i = 0; i < tensors.size(); i++) {
      Tensor gradient = gradients.get(i);
      Tensor parameter = tensors.get(i);
      if (gradient.isSparse()
          || gradient.dtype() != parameter.dtype()
          || !gradient.sameShape(parameter)
          || !gradient.device().equals(parameter.device())) {
        throw new IllegalArgumentException(
            "the gradient of "
                + describe(i)
                + " is "
                + gradient.describe()
                + ", but the parameter "
                + parameter.describe());
      }
    }
  }

  /**
   * Returns the properties that the parameter must share with those of other ranks, as text: name,
   * type, shape and device type.
   */
  String signature(int index) {
    Tensor tensor = tensors.get(index);
    Device device = tensor.device();
    return (names == null ? "" : "'" + names.get(index) + "' ")
        + tensor.dtype().label()
        + Arrays.toString(tensor.shape())
        + (device.isCpu() ? "" : " on " + device.type());
  }

  String describe(int index) {
    return "parameter " + index + (names == null ? "" : " '" + names.get(index) + "'");
  }

  /** Describes parameters, or the first eight of them if there are more. */
  String describe(List<Integer> indices) {
    if (indices.size() == 1) {
      return describe(indices.getFirst());
    }
    List<Integer> shown = indices.subList(0, Math.min(NAMED, indices.size()));
    String list =
        shown.stream()
            .map(i -> names == null ? i.toString() : i + " '" + names.get(i) + "'")
            .collect(Collectors.joining(", "));
    int rest = indices.size() - shown.size();
    return "parameters " + list + (rest == 0 ? "" : " and " + rest + " more");
  }

  /**
   * Returns the indices from last to first, the order in which the backward pass is expected to
   * produce gradients.
   */
  List<Integer> lastFirst() {
    return IntStream.range(0, tensors.size()).boxed().toList().reversed();
  }
}
