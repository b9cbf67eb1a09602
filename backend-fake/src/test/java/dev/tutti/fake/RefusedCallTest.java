package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests, in virtual time, that a call which a backend refuses on one rank leaves no gap. */
@Isolated("threads of other tests in shared locks would bring in real time")
class RefusedCallTest {
  private static final int SEEDS = 50;

  /** Provides backends that refuse sparse tensors. */
  private static final class Refusing extends DecoratedProvider {
    Refusing() {
      super(new ThreadedProvider());
    }

    @Override
    public Backend create(BackendContext context) throws Exception {
      return new RefusingBackend(inner.create(context));
    }
  }

  private static final class RefusingBackend extends DecoratedBackend {
    RefusingBackend(Backend inner) {
      super(inner);
    }

    @Override
    public void run(Operation op) throws Exception {
      if (op.type() == OpType.ALL_REDUCE_SPARSE) {
        throw new UnsupportedOperationException("sparse");
      }
      inner.run(op);
    }

    @Override
    DecoratedBackend around(Backend subgroup, BackendContext context) {
      return new RefusingBackend(subgroup);
    }
  }

  /** One rank alone makes calls that are refused, while the group is busy and others follow. */
  private static void callAndDisagree(ProcessGroup group) {
    Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
    Optional<Work> refused = Optional.empty();
    if (group.rank() == 1) {
      assertThatThrownBy(() -> group.broadcast(Tensor.of(1f), 2, CallOptions.ASYNC))
          .isInstanceOf(IllegalArgumentException.class);
      Tensor sparse = Tensor.sparse(Tensor.wrap(new long[1]).view(1, 1), Tensor.of(1f), 1);
      refused = Optional.of(group.allReduce(sparse, ReduceOp.SUM, CallOptions.ASYNC));
    }
    Work second = group.allReduce(Tensor.of(1f, 2f), ReduceOp.SUM, CallOptions.ASYNC);
    first.await();
    second.await();
    refused.ifPresent(
        work -> assertThatThrownBy(work::await).isInstanceOf(UnsupportedOperationException.class));
    assertThat(second.sequenceNumber()).isEqualTo(2);
    assertThat(group.sequenceNumber()).isEqualTo(2);
    Tensor wrong = group.rank() == 0 ? Tensor.of(1) : Tensor.of(1f);
    assertThat(catchThrowable(() -> group.allReduce(wrong)))
        .hasMessageContainingAll(
            "ranks disagree",
            "rank 0 called allReduce #3 int32[1]",
            "rank 1 called allReduce #3 float32[1]");
  }

  @Test
  void ranksCountAndReportAlikeAfterwards() {
    for (long seed = 0; seed < SEEDS; seed++) {
      assertThat(
              SimulatedWorld.of(2)
                  .withSeed(seed)
                  .withOptions(options -> options.withProvider(new Refusing()))
                  .run(RefusedCallTest::callAndDisagree)
                  .ends())
          .as("seed %d", seed)
          .extracting(RankEnd::failure)
          .containsOnlyNulls();
    }
  }
}
