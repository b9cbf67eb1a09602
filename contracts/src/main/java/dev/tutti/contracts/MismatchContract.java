package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.MismatchException;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.PeerMismatchException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Tests of calls that do not match: they soon fail on all ranks, instead of mixing up data. The
 * rank that detects the mismatch reports what each rank called.
 */
public interface MismatchContract extends GroupContract {
  /** Advice for a backend that fails these tests. */
  String HINT =
      "mismatched calls must fail at once, with a PeerMismatchException where the mismatch is"
          + " found; if the ranks of the backend do not compare their calls, let detectsMismatches"
          + " return false";

  /** Fails if a rank calls another operation. */
  @ContractTest(
      needs = {OpType.ALL_REDUCE, OpType.BROADCAST},
      mismatches = true)
  default void otherOperationsFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callOtherOperation);
  }

  private static void callOtherOperation(Member member, long numel, boolean isOdd) {
    Tensor tensor = member.scratch(DType.FLOAT32, numel);
    if (isOdd) {
      member.group().broadcast(tensor, 0);
    } else {
      member.group().allReduce(tensor);
    }
  }

  /** Fails if a rank requests another algorithm. */
  @ContractTest(needs = OpType.ALL_REDUCE, mismatches = true)
  default void otherAlgorithmsFail(ContractWorld world) throws Exception {
    List<String> usable =
        world
            .collect(member -> Algorithms.usable(member, member.scratch(DType.FLOAT32, 10)))
            .get(0);
    assumeThat(usable).as("algorithms that the backend can be asked for").isNotEmpty();
    CallOptions other = CallOptions.DEFAULT.withAlgorithm(usable.get(0));
    check(
        world,
        (member, numel, isOdd) ->
            member
                .group()
                .allReduce(
                    member.scratch(DType.FLOAT32, 10),
                    ReduceOp.SUM,
                    isOdd ? other : CallOptions.DEFAULT)
                .await());
  }

  /** Reports what each rank called, at the latest when an operation times out because of it. */
  @ContractTest(
      needs = {OpType.ALL_REDUCE, OpType.BROADCAST},
      movesData = true,
      minSize = 2,
      maxSize = 3)
  default void otherOperationsAreNamed(ContractWorld world) throws Exception {
    Duration brief = Duration.ofSeconds(3);
    if (!world.isInOneJvm()) {
      world.run(
          member -> {
            member.meet();
            checkNames(member, brief);
          });
      return;
    }
    JointCall.run(world, rank -> true, member -> checkNames(member, brief), member -> {});
  }

  private static void checkNames(Member member, Duration timeout) {
    ProcessGroup group = member.group();
    CallOptions brief = CallOptions.timeout(timeout);
    Refusals.Call first =
        member.rank() == 0
            ? () -> group.broadcast(member.scratch(DType.FLOAT32, 4), 0)
            : () -> group.allReduce(member.scratch(DType.FLOAT32, 4), ReduceOp.SUM, brief);
    Throwable thrown = catchThrowable(first::run);
    if (thrown == null && member.rank() > 0) {
      thrown =
          catchThrowable(
              () -> group.allReduce(member.scratch(DType.FLOAT32, 4), ReduceOp.SUM, brief));
    }
    assertThat(thrown)
        .satisfiesAnyOf(
            none -> assertThat(none).isNull(),
            failure -> assertThat(failure).isInstanceOf(CollectiveException.class));
    Waiting.until("the failure", () -> group.failure().isPresent());
    assertThat(group.failure().orElseThrow())
        .hasMessageContaining("broadcast")
        .hasMessageContaining("allReduce");
  }

  /** Fails if a rank passes another number of elements. */
  @ContractTest(needs = OpType.ALL_REDUCE, mismatches = true)
  default void otherSizesFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callWithOtherSize);
  }

  private static void callWithOtherSize(Member member, long numel, boolean isOdd) {
    member.group().allReduce(member.scratch(DType.FLOAT32, isOdd ? numel + 1 : numel));
  }

  /** Fails if a rank passes elements of another type of the same size. */
  @ContractTest(needs = OpType.ALL_REDUCE, mismatches = true)
  default void otherTypesFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callWithOtherType);
  }

  private static void callWithOtherType(Member member, long numel, boolean isOdd) {
    member.group().allReduce(member.scratch(isOdd ? DType.INT32 : DType.FLOAT32, numel));
  }

  /** Fails if a rank uses another operator. */
  @ContractTest(needs = OpType.ALL_REDUCE, mismatches = true)
  default void otherOperatorsFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callWithOtherOperator);
  }

  private static void callWithOtherOperator(Member member, long numel, boolean isOdd) {
    ReduceOp op = isOdd ? otherThanSum(member.world()) : ReduceOp.SUM;
    member.group().allReduce(member.scratch(DType.INT32, numel), op);
  }

  /** Fails if a rank names another root. */
  @ContractTest(needs = OpType.BROADCAST, mismatches = true)
  default void otherRootsFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callWithOtherRoot);
  }

  private static void callWithOtherRoot(Member member, long numel, boolean isOdd) {
    int root = isOdd ? Math.max(1, member.rank()) : 0;
    member.group().broadcast(member.scratch(DType.FLOAT32, numel), root);
  }

  /** Fails if a rank passes other numbers of rows, and names them on all ranks. */
  @ContractTest(needs = OpType.ALL_GATHER, features = Feature.UNEVEN_PARTS, mismatches = true)
  default void otherNumbersOfRowsFail(ContractWorld world) throws Exception {
    check(world, MismatchContract::callWithOtherRows);
    world.run(
        member -> {
          boolean isOdd = member.rank() == 0;
          Throwable _ = catchThrowable(() -> callWithOtherRows(member, 4, isOdd));
          Waiting.until("the failure", () -> member.group().failure().isPresent());
          assertThat(member.group().failure().orElseThrow())
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("ranks disagree")
              .hasMessageContaining(member.size() == 2 ? "[4+5]" : "[4+4+5]")
              .hasMessageContaining(member.size() == 2 ? "[4+4]" : "[4+4+4]");
        });
  }

  private static void callWithOtherRows(Member member, long numel, boolean isOdd) {
    long[] splits = new long[member.size()];
    Arrays.fill(splits, numel);
    // The last rank, which makes the odd call of the tests, has to pass what it announces.
    splits[member.size() - 1] += isOdd ? 1 : 0;
    Tensor output = member.scratch(DType.FLOAT32, Arrays.stream(splits).sum());
    Tensor input = member.scratch(DType.FLOAT32, splits[member.rank()]);
    member.group().allGatherInto(output, input, splits);
  }

  /** Fails if a rank passes other numbers of rows to reduce, and names them on all ranks. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, features = Feature.UNEVEN_PARTS, mismatches = true)
  default void otherNumbersOfReducedRowsFail(ContractWorld world) throws Exception {
    check(
        world,
        (member, numel, isOdd) -> {
          long[] splits = new long[member.size()];
          Arrays.fill(splits, numel);
          splits[0] += isOdd ? 1 : 0;
          splits[1] -= isOdd ? 1 : 0;
          Tensor input = member.scratch(DType.FLOAT32, Arrays.stream(splits).sum());
          Tensor output = member.scratch(DType.FLOAT32, splits[member.rank()]);
          member.group().reduceScatterInto(output, input, splits, ReduceOp.SUM);
        });
  }

  /** Names the odd rank on all ranks if the others are a majority, and otherwise no rank. */
  @ContractTest(
      needs = {OpType.ALL_REDUCE, OpType.BROADCAST},
      mismatches = true)
  default void theOddRankIsNamed(ContractWorld world) throws Exception {
    List<OddCall> calls =
        List.of(
            MismatchContract::callWithOtherSize,
            MismatchContract::callWithOtherType,
            MismatchContract::callWithOtherOperator,
            MismatchContract::callWithOtherRoot,
            MismatchContract::callOtherOperation);
    for (OddCall call : calls) {
      for (int odd = 0; odd < world.size(); odd++) {
        int oddRank = odd;
        world.run(
            member -> {
              Throwable thrown =
                  catchThrowable(() -> call.run(member, 4, member.rank() == oddRank));
              if (thrown == null) {
                Waiting.until("the failure", () -> member.group().failure().isPresent());
              }
              CollectiveException failure =
                  (CollectiveException) member.group().failure().orElseThrow();
              assertThat(failure.failedRank())
                  .as("rank named by: %s", failure)
                  .isEqualTo(member.size() > 2 ? OptionalInt.of(oddRank) : OptionalInt.empty());
              assertThat(failure)
                  .isInstanceOf(MismatchException.class)
                  .hasMessageContaining("ranks disagree");
            });
      }
    }
  }

  /**
   * Fails a receive whose size or type differs from what was sent, instead of filling it in part.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      mismatches = true)
  default void aReceiveOfAnotherSizeOrTypeFails(ContractWorld world) throws Exception {
    for (int numel : new int[] {4, 40_000}) {
      checkReceive(world, numel, DType.FLOAT32, numel - 1);
      checkReceive(world, numel, DType.FLOAT32, numel + 1);
      checkReceive(world, numel, DType.INT32, numel);
    }
  }

  private static ReduceOp otherThanSum(ContractWorld world) {
    return Arrays.stream(ReduceOp.Kind.values())
        .filter(kind -> kind != ReduceOp.Kind.SUM)
        .map(kind -> TestData.op(kind, 0))
        .filter(op -> world.capabilities().canReduce(DType.INT32, op))
        .findFirst()
        .orElseThrow();
  }

  private static void checkReceive(ContractWorld world, int sent, DType dtype, int wanted)
      throws Exception {
    assertThat(CaughtFailures.ofReceive(world, sent, dtype, wanted))
        .as(HINT)
        .hasAtLeastOneElementOfType(PeerMismatchException.class);
  }

  /** The calls of the ranks, of which the odd one makes a different one. */
  interface OddCall {
    /** Calls a collective with the given number of elements. */
    void run(Member member, long numel, boolean isOdd) throws Exception;
  }

  private static void check(ContractWorld world, OddCall call) throws Exception {
    for (long numel : new long[] {4, 40_000}) {
      Collection<Throwable> causes = new ConcurrentLinkedQueue<>();
      world.run(
          member -> {
            boolean isOdd = member.rank() == member.size() - 1;
            long start = System.nanoTime();
            Throwable thrown = catchThrowable(() -> call.run(member, numel, isOdd));
            // A rank that needs nothing of the others may have come through.
            Waiting.until("the failure; " + HINT, () -> member.group().failure().isPresent());
            assertThat(Duration.ofNanos(System.nanoTime() - start))
                .as("time until the failure; " + HINT)
                .isLessThan(CaughtFailures.SOON);
            Throwable failure = thrown == null ? member.group().failure().orElseThrow() : thrown;
            assertThat(failure)
                .as(HINT)
                .isInstanceOf(CollectiveException.class)
                .isNotInstanceOf(CollectiveTimeoutException.class);
            causes.addAll(CaughtFailures.causes(failure));
          });
      assertThat(causes).as(HINT).hasAtLeastOneElementOfType(PeerMismatchException.class);
    }
  }
}
