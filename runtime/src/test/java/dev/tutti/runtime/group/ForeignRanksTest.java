package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.SubgroupOptions;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests groups whose backend has ranks of another library. */
@Timeout(300)
class ForeignRanksTest {
  @Test
  void allRanksTakePartInASubgroupAndNoneInASplit() throws Exception {
    KnowingProvider provider = new KnowingProvider();
    List<Boolean> members =
        LocalWorld.run(
            3,
            provider,
            group -> {
              assertThatThrownBy(() -> group.split(0, 0))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("use subgroup(ranks), which matches their new_group");
              boolean isMember = group.subgroup(List.of(2, 0)).isPresent();
              ProcessGroup all = group.subgroup(List.of(0, 1, 2)).orElseThrow();
              assertThatThrownBy(() -> all.subgroup(List.of(0)))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("subgroup of group 2")
                  .hasMessageContaining("only of the group of all ranks");
              return isMember;
            });
    assertThat(members).containsExactly(true, false, true);
    assertThat(provider.calls)
        .containsExactlyInAnyOrder(
            "0 of 1: [0, 2]",
            "passes [0, 2]",
            "1 of 1: [0, 2]",
            "0 of 2: [0, 1, 2]",
            "1 of 2: [0, 1, 2]",
            "2 of 2: [0, 1, 2]");
    assertThat(provider.made).containsOnly("0");
  }

  @Test
  void membersMakeNoGroupAlone() throws Exception {
    KnowingProvider provider = new KnowingProvider();
    SubgroupOptions local = SubgroupOptions.DEFAULT.withLocalSynchronization();
    LocalWorld.run(
        2,
        provider,
        group ->
            assertThatThrownBy(() -> group.subgroup(List.of(0, 1), local))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("local synchronization of a subgroup of group 0")
                .hasMessageContaining("use subgroup(ranks), called by all ranks"));
    assertThat(provider.calls).isEmpty();
  }

  @Test
  void aTimeoutSaysWhatMayBeTheCause() throws Exception {
    LocalWorld.run(
        2,
        new KnowingProvider(),
        group ->
            assertThatThrownBy(
                    () ->
                        group.recv(
                            Tensor.of(0f),
                            1 - group.rank(),
                            0,
                            CallOptions.timeout(Duration.ofMillis(200))))
                .hasMessageContaining("the operation did not complete in time; if recv is of use"));
  }

  private static final class KnowingProvider extends LocalProvider {
    private final Queue<String> calls = new ConcurrentLinkedQueue<>();
    private final Queue<String> made = new ConcurrentLinkedQueue<>();

    @Override
    public Backend create(BackendContext context) {
      made.add(context.group());
      return new KnowingBackend();
    }

    private final class KnowingBackend implements Backend {
      @Override
      public boolean hasForeignRanks() {
        return true;
      }

      @Override
      public Backend createSubgroup(BackendContext context, List<Integer> ranks) {
        calls.add(context.rank() + " of " + context.group() + ": " + ranks);
        return new KnowingBackend();
      }

      @Override
      public void passSubgroup(List<Integer> ranks, long deadlineNanos) {
        calls.add("passes " + ranks);
      }

      @Override
      public void recv(Operation op, Tensor tensor, int peer, int tag) {}

      @Override
      public String likelyCause(Operation op) {
        return "if " + op.type().label() + " is of use";
      }

      @Override
      public void abort(Throwable cause) {}

      @Override
      public void close() {}
    }
  }
}
