package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.Tensor;

/** Tests of broadcast: every type, root, size and layout. */
public interface BroadcastContract extends GroupContract {
  /** Copies every type from every root. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true)
  default void broadcastCopiesEveryTypeFromEveryRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            for (int root : world.roots()) {
              checkBroadcast(member, Layout.CONTIGUOUS, dtype, root, 37);
            }
          }
        });
  }

  /** Copies sizes around the number of ranks and around powers of two. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true)
  default void broadcastTakesAnySize(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int n = member.size();
          for (long numel : world.sizes()) {
            checkBroadcast(member, Layout.CONTIGUOUS, DType.INT32, 0, numel);
            checkBroadcast(member, Layout.CONTIGUOUS, DType.FLOAT32, n - 1, numel);
          }
          checkBroadcast(member, Layout.CONTIGUOUS, DType.FLOAT32, n - 1);
        });
  }

  /** Copies between tensors of every memory layout. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true)
  default void broadcastTakesAnyLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            for (Layout layout : member.layouts(dtype)) {
              checkBroadcast(member, layout, dtype, member.size() - 1, 5, 7);
            }
          }
        });
  }

  /** Copies between ranks whose tensors have different layouts and strides, but equal shapes. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true, minSize = 2)
  default void broadcastTakesAnotherLayoutOnEachRank(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int count = member.layouts().size();
          for (int shift = 0; shift < count; shift++) {
            Layout layout = member.layouts().get((member.rank() + shift) % count);
            checkBroadcast(member, layout, DType.INT32, 0, 6, 4);
          }
        });
  }

  /** Only reads the root's tensor, which may be read-only or have one element in many places. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true)
  default void broadcastOnlyReadsTheRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          if (!member.scratch(DType.FLOAT32, 1).device().isCpu()) {
            return;
          }
          int root = member.size() - 1;
          for (long numel : new long[] {2, 5000, 400_000}) {
            TestTensor tensor = member.toMove(Layout.CONTIGUOUS, DType.FLOAT32, numel, numel);
            Tensor view = tensor.view();
            if (member.rank() == root) {
              view = Tensor.wrap(view.segment().asReadOnly(), DType.FLOAT32, numel);
            }
            member.group().broadcast(view, root);
            tensor.assertMoved("broadcast of read-only memory", root, numel);
          }
          TestTensor expanded = member.floats(1, 2, 1, 2, 1, 2);
          Tensor view = expanded.view();
          if (member.rank() == root) {
            view =
                Tensor.wrap(
                    member.floats(3, 4).view().segment(),
                    DType.FLOAT32,
                    new long[] {3, 2},
                    new long[] {0, 1},
                    Device.CPU);
          }
          member.group().broadcast(view, root);
          if (member.rank() != root) {
            expanded.assertValues("broadcast of a row", new double[] {3, 4, 3, 4, 3, 4});
          }
        });
  }

  private static void checkBroadcast(
      Member member, Layout layout, DType dtype, int root, long... shape) {
    long numel = TestData.numel(shape);
    TestTensor tensor = member.toMove(layout, dtype, numel, shape);
    member.group().broadcast(tensor.view(), root);
    tensor.assertMoved("broadcast of " + dtype.label() + " from root " + root, root, numel);
  }
}
