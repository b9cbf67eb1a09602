package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.dataset.Record;
import ai.djl.util.Progress;
import dev.tutti.MismatchException;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.testing.World;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShardedSamplerTest {
  /** A data set of a given number of samples without content. */
  private static final class Samples extends RandomAccessDataset {
    private final long count;

    Samples(long count) {
      super(new Builder());
      this.count = count;
    }

    @Override
    public Record get(NDManager manager, long index) {
      throw new UnsupportedOperationException("a sampler reads no samples");
    }

    @Override
    protected long availableSize() {
      return count;
    }

    @Override
    public void prepare(Progress progress) {}

    private static final class Builder extends BaseBuilder<Builder> {
      Builder() {
        setSampling(1, false);
      }

      @Override
      protected Builder self() {
        return this;
      }
    }
  }

  private static ShardedSampler sampler(int rank, int size, int batchSize) {
    return new ShardedSampler(null, rank, size, batchSize, true, false, 0);
  }

  private static List<List<Long>> epoch(ShardedSampler sampler, long count) {
    List<List<Long>> batches = new ArrayList<>();
    sampler.sample(new Samples(count)).forEachRemaining(batches::add);
    return batches;
  }

  @Test
  void ranksTakeTurnsAndRepeatTheFirstSamples() {
    assertThat(epoch(sampler(0, 4, 2).withoutShuffle(), 10))
        .containsExactly(List.of(0L, 4L), List.of(8L));
    assertThat(epoch(sampler(1, 4, 2).withoutShuffle(), 10))
        .containsExactly(List.of(1L, 5L), List.of(9L));
    assertThat(epoch(sampler(2, 4, 2).withoutShuffle(), 10))
        .containsExactly(List.of(2L, 6L), List.of(0L));
    assertThat(epoch(sampler(3, 4, 2).withoutShuffle(), 10))
        .containsExactly(List.of(3L, 7L), List.of(1L));
  }

  @Test
  void aSmallDataSetIsRepeatedAsOftenAsItTakes() {
    assertThat(epoch(sampler(0, 8, 1).withoutShuffle(), 3)).containsExactly(List.of(0L));
    assertThat(epoch(sampler(7, 8, 1).withoutShuffle(), 3)).containsExactly(List.of(1L));
    assertThat(epoch(sampler(7, 8, 1), 0)).isEmpty();
  }

  @Test
  void theDroppedTailLeavesFullBatchesOnEveryRank() {
    assertThat(epoch(sampler(0, 2, 3).withoutShuffle().withDroppedTail(), 17))
        .containsExactly(List.of(0L, 2L, 4L), List.of(6L, 8L, 10L));
    assertThat(epoch(sampler(1, 2, 3).withoutShuffle().withDroppedTail(), 17))
        .containsExactly(List.of(1L, 3L, 5L), List.of(7L, 9L, 11L));
  }

  @ParameterizedTest
  @CsvSource({"2, 16, 100", "4, 8, 1437", "3, 5, 7", "4, 8, 32"})
  void batchesOfAllRanksAreThoseOfOneProcess(int size, int batchSize, long count) {
    ShardedSampler alone = sampler(0, 1, size * batchSize).withSeed(7).withDroppedTail();
    List<ShardedSampler> ranks = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      ranks.add(sampler(rank, size, batchSize).withSeed(7).withDroppedTail());
    }
    for (int epoch = 0; epoch < 3; epoch++) {
      List<List<Long>> whole = epoch(alone, count);
      List<List<List<Long>>> parts = ranks.stream().map(each -> epoch(each, count)).toList();
      for (int batch = 0; batch < whole.size(); batch++) {
        List<Long> together = new ArrayList<>();
        for (List<List<Long>> part : parts) {
          assertThat(part).hasSameSizeAs(whole);
          together.addAll(part.get(batch));
        }
        assertThat(together).containsExactlyInAnyOrderElementsOf(whole.get(batch));
      }
    }
  }

  @Test
  void eachEpochHasEverySampleOnceInAnOrderOfItsOwn() {
    ShardedSampler sampler = sampler(0, 1, 10);
    List<Long> first = epoch(sampler, 100).stream().flatMap(List::stream).toList();
    List<Long> second = epoch(sampler, 100).stream().flatMap(List::stream).toList();
    List<Long> sorted = LongStream.range(0, 100).boxed().toList();
    assertThat(first).containsExactlyInAnyOrderElementsOf(sorted).isNotEqualTo(sorted);
    assertThat(second).containsExactlyInAnyOrderElementsOf(sorted).isNotEqualTo(first);

    sampler.setEpoch(0);
    assertThat(epoch(sampler, 100).stream().flatMap(List::stream).toList()).isEqualTo(first);
    assertThat(epoch(sampler.withSeed(1), 100).stream().flatMap(List::stream).toList())
        .isNotEqualTo(first);
  }

  @Test
  void anEndedEpochHasNoMoreBatches() {
    Iterator<List<Long>> batches = sampler(0, 1, 4).sample(new Samples(4));
    assertThat(batches.next()).hasSize(4);
    assertThat(batches.hasNext()).isFalse();
    assertThatThrownBy(batches::next).isInstanceOf(NoSuchElementException.class);
  }

  @Test
  void aBatchNeedsASample() {
    assertThatThrownBy(() -> sampler(3, 4, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("a batch of rank 3 must have at least one sample, not 0");
  }

  @World(
      sizes = {2, 3},
      backends = "gloo",
      timeoutSeconds = 240)
  void ranksThatBeginDifferentEpochsAllSaySo(ProcessGroup group) {
    ShardedSampler sampler = new ShardedSampler(group, 2);
    assertThat(epoch(sampler, 12)).hasSize(6 / group.size());
    if (group.rank() == 1) {
      sampler.setEpoch(2);
    }
    int other = group.rank() == 1 ? 0 : 1;
    assertThatThrownBy(() -> epoch(sampler, 12))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(
            ("rank %d begins epoch %d and rank %d begins epoch %d; read the sampler equally often"
                    + " on all ranks, or call setEpoch before")
                .formatted(group.rank(), group.rank() == 1 ? 2 : 1, other, other == 1 ? 2 : 1));
    sampler.setEpoch(1);
    assertThat(epoch(sampler, 12)).hasSize(6 / group.size());
  }

  @World(sizes = 2, backends = "gloo", timeoutSeconds = 240)
  void aRankThatReadsTheSamplerAloneIsFound(ProcessGroup group) {
    ShardedSampler sampler = new ShardedSampler(group, 2);
    if (group.rank() == 0) {
      sampler.sample(new Samples(12)).next();
    }
    assertThatThrownBy(
            () -> {
              epoch(sampler, 12);
              group.allReduce(Tensor.of(1f));
            })
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("allGatherInto")
        .hasMessageContaining("allReduce");
    assertThat(epoch(new ShardedSampler(group, 2).withoutShuffle(), 12)).hasSize(3);
  }

  @Test
  void theStateOfASamplerContinuesWithTheNextEpoch() {
    Samples samples = new Samples(10);
    ShardedSampler sampler = sampler(0, 2, 5).withSeed(-3);
    sampler.sample(samples);
    ShardedSampler resumed = sampler(0, 2, 5).withSeed(-3);
    resumed.restored(sampler.counters());
    assertThat(resumed.sample(samples).next()).isEqualTo(sampler.sample(samples).next());
    assertThat(resumed.counters()).isEqualTo(Map.of("epoch", 2L, "seed", -3L));
    assertThatThrownBy(() -> sampler(0, 2, 5).restored(sampler.counters()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("the sampler shuffles with seed 0, which the state {");
  }
}
