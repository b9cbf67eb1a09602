package dev.tutti.testing;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A rank of a {@link ContractWorld}, as its test body sees it. */
final class Member {
  private final ContractWorld world;
  private final ProcessGroup group;

  Member(ContractWorld world, ProcessGroup group) {
    this.world = world;
    this.group = group;
  }

  ContractWorld world() {
    return world;
  }

  ProcessGroup group() {
    return group;
  }

  int rank() {
    return group.rank();
  }

  int size() {
    return group.size();
  }

  int next() {
    return (rank() + 1) % size();
  }

  int previous() {
    return (rank() + size() - 1) % size();
  }

  Capabilities capabilities() {
    return world.capabilities();
  }

  /** Returns this rank as a member of another group. */
  Member in(ProcessGroup other) {
    return new Member(world, other);
  }

  TestTensor tensor(DType dtype, double[] values, long... shape) {
    return tensor(Layout.CONTIGUOUS, dtype, values, shape);
  }

  TestTensor tensor(Layout layout, DType dtype, double[] values, long... shape) {
    return TestTensor.of(world.subject(), layout, dtype, values, shape);
  }

  /** Returns a contiguous float32 vector. */
  TestTensor floats(double... values) {
    return tensor(DType.FLOAT32, values, values.length);
  }

  /** Returns memory to receive into, filled with values. */
  TestTensor blank(Layout layout, DType dtype, long... shape) {
    long numel = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    double filling = dtype == DType.BOOL ? 1 : dtype.isOpaque() ? 0 : 99;
    return tensor(layout, dtype, TestData.constant(dtype, filling, numel), shape);
  }

  /** Returns the layouts that tensors of the backend may have. */
  List<Layout> layouts() {
    if (scratch(DType.UINT8, 1).device().isCpu()) {
      return List.of(Layout.values());
    }
    boolean strided = capabilities().has(Feature.STRIDED_TENSORS);
    return Arrays.stream(Layout.values())
        .filter(l -> l != Layout.HEAP && (strided || l.isContiguous()))
        .toList();
  }

  /** Returns a layout, or a substitute if the backend does not support it. */
  Layout layout(Layout wanted) {
    return layouts().contains(wanted) ? wanted : Layout.OFFSET;
  }

  /**
   * Returns the layouts for one of many cases: all of them, or in a large world a single one that
   * varies with the case.
   */
  List<Layout> layouts(Object testCase) {
    List<Layout> layouts = layouts();
    int turn = Math.floorMod(testCase.toString().hashCode(), layouts.size());
    return world.isLarge() ? List.of(layouts.get(turn)) : layouts;
  }

  /** Returns all pairs of layouts; in a large world, each layout appears once on either side. */
  List<LayoutPair> layoutPairs() {
    List<Layout> layouts = layouts();
    List<LayoutPair> pairs = new ArrayList<>();
    for (int i = 0; i < layouts.size(); i++) {
      for (int k = 0; k < layouts.size(); k++) {
        if (!world.isLarge() || k == (i + 1) % layouts.size()) {
          pairs.add(new LayoutPair(layouts.get(i), layouts.get(k)));
        }
      }
    }
    return pairs;
  }

  /** The memory layouts of the input and the output of an operation. */
  record LayoutPair(Layout input, Layout output) {}

  /** Returns the types that the backend moves. */
  List<DType> movable() {
    return capabilities().movable().stream().sorted().toList();
  }

  /** Returns uninitialized memory, for tests that do not look at values. */
  Tensor scratch(DType dtype, long... shape) {
    return world.subject().allocate(dtype, shape);
  }

  /** Waits, through the group's store, until all ranks have reached this call. */
  void meet() {
    group.store().barrier("meet", size(), Waiting.LONG);
  }

  /** Runs any collective that the backend supports. */
  void collective() {
    if (capabilities().has(OpType.ALL_REDUCE)) {
      group.allReduce(floats(1).view());
    } else if (capabilities().has(OpType.BARRIER)) {
      group.barrier();
    } else {
      group.broadcast(floats(1).view(), 0);
    }
  }

  /** Runs an all-reduce and waits until it is over, even on a device. */
  void awaitSum() {
    group.allReduce(floats(1).view(), ReduceOp.SUM, CallOptions.DEFAULT).await();
  }

  /** Asserts that the group works: its next collective has the right result. */
  void assertUsable() {
    if (!capabilities().has(OpType.ALL_REDUCE)) {
      collective();
      return;
    }
    TestTensor tensor = floats(rank() + 1, 2);
    group.allReduce(tensor.view());
    if (world.hasRealResults()) {
      double sum = size() * (size() + 1) / 2.0;
      tensor.assertValues("all-reduce on a usable group", sum, 2.0 * size());
    }
  }
}
