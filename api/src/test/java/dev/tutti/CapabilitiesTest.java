package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities.Feature;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class CapabilitiesTest {
  /** The sets of version 1 are frozen, even if the enums grow. */
  @Test
  void version1IsFrozen() {
    Capabilities all = Capabilities.ofVersion1(Feature.TAGS);
    assertThat(all.operations())
        .extracting(OpType::label)
        .containsExactly(
            "broadcast",
            "allReduce",
            "allReduceCoalesced",
            "reduce",
            "allGather",
            "allGatherInto",
            "allGatherIntoCoalesced",
            "gather",
            "scatter",
            "reduceScatter",
            "allToAllSingle",
            "allToAll",
            "send",
            "recv",
            "recvAnySource",
            "barrier",
            "reduceScatterInto",
            "allReduceSparse",
            "monitoredBarrier",
            "reduceScatterIntoCoalesced");
    assertThat(all.movable()).hasSize(16);
    assertThat(all.reducible()).hasSize(12).noneMatch(DType::isOpaque);
    assertThat(all.reduceOps()).hasSize(9);
    assertThat(all.features()).containsExactly(Feature.TAGS);
  }

  @Test
  void aBuilderHasWhatIsNamed() {
    assertThat(Capabilities.builder().build().operations()).isEmpty();
    Capabilities some =
        Capabilities.builder()
            .operations(List.of(OpType.ALL_REDUCE))
            .movable(List.of(DType.INT8, DType.FLOAT32))
            .reducible(List.of(DType.FLOAT32))
            .reduceOps(List.of(ReduceOp.Kind.MAX))
            .build();
    assertThat(some.has(OpType.ALL_REDUCE)).isTrue();
    assertThat(some.has(OpType.REDUCE)).isFalse();
    assertThat(some.canReduce(DType.FLOAT32, ReduceOp.MAX)).isTrue();
    assertThat(some.canReduce(DType.FLOAT32, ReduceOp.SUM)).isFalse();
    assertThat(some.canReduce(DType.INT8, ReduceOp.MAX)).isFalse();
    assertThat(some.toBuilder().build()).isEqualTo(some).hasSameHashCodeAs(some);
    assertThat(some.toBuilder().features(Set.of(Feature.TAGS)).build()).isNotEqualTo(some);
  }

  @Test
  void withoutTakesAway() {
    Capabilities all = Capabilities.ofVersion1(Feature.TAGS, Feature.UNEVEN_PARTS);
    assertThat(all.without(OpType.SEND, OpType.RECV).operations())
        .hasSize(18)
        .doesNotContain(OpType.SEND, OpType.RECV);
    assertThat(all.without(Set.of(Feature.TAGS)).features()).containsExactly(Feature.UNEVEN_PARTS);
  }
}
