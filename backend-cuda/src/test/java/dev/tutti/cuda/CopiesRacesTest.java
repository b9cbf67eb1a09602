package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests that no two accesses of an all-reduce by copies race, and that they would without any one
 * of its waits for events and flags.
 */
class CopiesRacesTest {
  private static final CallOptions COPIES = CallOptions.DEFAULT.withAlgorithm("copies");
  private static final int PIECE = 256;

  /** The waits of rank 0, of which one may be hidden from the finder. */
  private static final class Waits {
    private final int hidden;
    private final ThreadLocal<Boolean> isArmed = ThreadLocal.withInitial(() -> false);
    private final AtomicInteger seen = new AtomicInteger();

    Waits(int hidden) {
      this.hidden = hidden;
    }

    boolean hides() {
      return isArmed.get() && isOfCopies() && seen.getAndIncrement() == hidden;
    }

    private static boolean isOfCopies() {
      return StackWalker.getInstance()
          .walk(
              frames -> frames.anyMatch(frame -> frame.getClassName().endsWith("CopiedAllReduce")));
    }
  }

  /** Reduces a tensor of some pieces twice, each time after it was written; then reads it. */
  private static List<String> races(int size, int pieces, boolean inPlace, Waits waits)
      throws Exception {
    try (FakeMachine machine = new FakeMachine(size)) {
      machine.fake.hideWaits(waits::hides);
      DeviceBuckets buckets = DeviceBuckets.of(machine);
      int numel = pieces * PIECE / Float.BYTES - 3;
      new CudaRanks(machine.cuda)
          .with("TUTTI_X_CUDA_COPIES_PIECE_BYTES", String.valueOf(PIECE))
          .withTime(new Unwatched())
          .run(
              size,
              (group, device) -> {
                SymmetricMemory memory = group.allocateSymmetric((long) Float.BYTES * numel);
                Tensor tensor =
                    inPlace
                        ? memory.buffer(group.rank(), DType.FLOAT32, 0, numel)
                        : device.tensors().allocate(DType.FLOAT32, numel);
                Tensor values = device.tensors().copyOf(filled(numel, group.rank() + 1));
                Tensor sums = device.tensors().allocate(DType.FLOAT32, numel);
                group.allReduce(tensor, ReduceOp.SUM, COPIES);
                device.currentStream().await(Until.LONG);
                // The host orders what ranks do with new memory, of which the finder knows nothing.
                group.store().barrier("done", size, Until.LONG);
                machine.fake.races().find();
                group.store().barrier("enabled", size, Until.LONG);
                waits.isArmed.set(group.rank() == 0);
                for (int i = 0; i < 2; i++) {
                  buckets.copy(tensor, values);
                  group.allReduce(tensor, ReduceOp.SUM, COPIES);
                  buckets.copy(sums, tensor);
                }
                waits.isArmed.set(false);
                device.currentStream().await(Until.LONG);
              });
      machine.closeDriver();
      return machine.fake.races().found();
    } catch (TuttiException e) {
      return List.of(e.toString());
    }
  }

  private static Tensor filled(int numel, float value) {
    Tensor host = Tensor.allocate(DType.FLOAT32, numel);
    host.fill(value);
    return host;
  }

  @ParameterizedTest
  @CsvSource({"2, 1, true", "2, 4, true", "2, 4, false", "3, 3, true"})
  void everyWaitIsNeededAndNoneIsMissing(int size, int pieces, boolean inPlace) throws Exception {
    Waits all = new Waits(-1);
    assertThat(races(size, pieces, inPlace, all)).isEmpty();
    assertThat(all.seen.get()).as("waits").isPositive();
    for (int i = 0; i < all.seen.get(); i++) {
      assertThat(races(size, pieces, inPlace, new Waits(i))).as("without wait %d", i).isNotEmpty();
    }
  }
}
