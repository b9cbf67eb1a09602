package dev.tutti.contracts;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

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

  /** Returns the ranks of the group. */
  List<Integer> ranks() {
    return IntStream.range(0, size()).boxed().toList();
  }

  /** Creates another group of the same ranks. */
  ProcessGroup twin() {
    return group.subgroup(ranks()).orElseThrow();
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
    double filling = dtype == DType.BOOL ? 1 : dtype.isOpaque() ? 0 : 99;
    double[] values = TestData.constant(dtype, filling, TestData.numel(shape));
    return tensor(layout, dtype, values, shape);
  }

  /** Returns such memory for one tensor from each rank. */
  List<TestTensor> blanks(Layout layout, DType dtype, long... shape) {
    return ranks().stream().map(_ -> blank(layout, dtype, shape)).toList();
  }

  /** Returns this rank's one of the equal parts of a vector. */
  Tensor ownPart(TestTensor vector) {
    long numel = vector.view().numel() / size();
    return vector.view().narrow(0, numel * rank(), numel);
  }

  /** Returns elements to move, which are different on each rank. */
  TestTensor toMove(Layout layout, DType dtype, long seed, long... shape) {
    double[] values = TestData.toMove(dtype, rank(), seed, TestData.numel(shape));
    return tensor(layout, dtype, values, shape);
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

  /** Starts to send a tensor to the next rank. */
  Work sendToNext(TestTensor tensor, int tag) {
    return group.send(tensor.view(), next(), tag, CallOptions.ASYNC);
  }

  /** Starts to receive a tensor from the previous rank. */
  Work recvFromPrevious(TestTensor tensor, int tag) {
    return group.recv(tensor.view(), previous(), tag, CallOptions.ASYNC);
  }

  /** Sends a tensor to the next rank while receiving one from the previous rank. */
  void exchange(TestTensor sent, TestTensor received) {
    if (!capabilities().has(Feature.TAGS)) {
      group.batch().send(sent.view(), next(), 0).recv(received.view(), previous(), 0).run();
      return;
    }
    Work send = sendToNext(sent, 0);
    group.recv(received.view(), previous());
    send.await();
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

  /** Starts to sum a tensor over the ranks. */
  Work startSum(Tensor tensor) {
    return group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
  }

  /** Sums a tensor over the ranks and waits until that is over, even on a device. */
  void awaitSum(Tensor tensor) {
    group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT).await();
  }

  /** Runs an all-reduce and waits until it is over, even on a device. */
  void awaitSum() {
    awaitSum(floats(1).view());
  }

  /** Asserts that the group works: its next collective has the right result. */
  void assertUsable() {
    if (!capabilities().has(OpType.ALL_REDUCE)) {
      collective();
      return;
    }
    TestTensor tensor = floats(rank() + 1, 2);
    group.allReduce(tensor.view());
    if (world.movesData()) {
      double sum = size() * (size() + 1) / 2.0;
      tensor.assertValues("all-reduce on a usable group", sum, 2.0 * size());
    }
  }
}
