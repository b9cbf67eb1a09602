package dev.tutti.djl;

import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.dataset.Sampler;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * A sampler that divides a data set among the ranks of a group (PyTorch: {@code
 * DistributedSampler}).
 *
 * <p>All ranks put the samples of an epoch in the same order, determined by a seed and the epoch's
 * number; rank r takes the samples at positions r, r + size, r + 2 size and so on. Together, the
 * batches of all ranks are thus those of one process with batches {@code size} times as large.
 * Every rank has the same number of batches, of the same sizes.
 *
 * <p>Each call of {@link #sample} begins the next epoch; the first is 0. While it shuffles, all
 * ranks make that call together, like a collective, and compare their epochs. A checkpoint that is
 * saved between epochs keeps the seed and the epoch that is next. Apart from the epoch, the sampler
 * is immutable; each {@code with} method returns a changed sampler that begins at epoch 0. Used by
 * one thread at a time.
 */
public final class ShardedSampler implements Sampler, ShardedState {
  private static final String EPOCH = "epoch";
  private static final String SEED = "seed";
  private static final long GOLDEN_RATIO = 0x9e3779b97f4a7c15L;

  private final @Nullable ProcessGroup group;
  private final int rank;
  private final int size;
  private final int batchSize;
  private final boolean shuffled;
  private final boolean tailDropped;
  private final long seed;
  private long epoch;

  /**
   * Creates a sampler that shuffles with seed 0, and repeats samples if they cannot be divided
   * evenly.
   *
   * @param group the group of all ranks that train
   * @param batchSize the number of samples in a batch on each rank, at least 1
   */
  public ShardedSampler(ProcessGroup group, int batchSize) {
    this(group, group.rank(), group.size(), batchSize, true, false, 0);
  }

  /** Creates a sampler, which compares epochs in a group, or not if that is null. */
  ShardedSampler(
      @Nullable ProcessGroup group,
      int rank,
      int size,
      int batchSize,
      boolean shuffled,
      boolean tailDropped,
      long seed) {
    if (batchSize < 1) {
      throw new IllegalArgumentException(
          "a batch of rank " + rank + " must have at least one sample, not " + batchSize);
    }
    this.group = group;
    this.rank = rank;
    this.size = size;
    this.batchSize = batchSize;
    this.shuffled = shuffled;
    this.tailDropped = tailDropped;
    this.seed = seed;
  }

  /**
   * Changes the seed of the shuffle.
   *
   * @param newSeed the seed, the same on all ranks
   */
  public ShardedSampler withSeed(long newSeed) {
    return new ShardedSampler(group, rank, size, batchSize, shuffled, tailDropped, newSeed);
  }

  /** Takes samples in the order of the data set. */
  public ShardedSampler withoutShuffle() {
    return new ShardedSampler(group, rank, size, batchSize, false, tailDropped, seed);
  }

  /**
   * Omits the samples at the end of an epoch that do not fill a batch on every rank. Without this,
   * the first samples of the epoch are repeated until all ranks have the same number, and the last
   * batch may be smaller than the others.
   */
  public ShardedSampler withDroppedTail() {
    return new ShardedSampler(group, rank, size, batchSize, shuffled, true, seed);
  }

  /**
   * Sets the epoch that the next call of {@link #sample} begins, for example after a checkpoint.
   *
   * @param next the epoch, from 0; the same on all ranks
   */
  public void setEpoch(long next) {
    epoch = next;
  }

  /** Returns nothing: the state of the sampler is the same on all ranks. */
  @Override
  public List<StatePart> parts() {
    return List.of();
  }

  /** Returns the seed and the epoch that the next call of {@link #sample} begins. */
  @Override
  public Map<String, Long> counters() {
    return Map.of(EPOCH, epoch, SEED, seed);
  }

  /**
   * Continues with the epoch that was next.
   *
   * @throws IllegalArgumentException if the seed differs, so that samples would come in another
   *     order
   */
  @Override
  public void restored(Map<String, Long> counters) {
    Long saved = counters.get(EPOCH);
    if (saved == null || !Objects.equals(counters.get(SEED), seed)) {
      throw new IllegalArgumentException(
          "the sampler shuffles with seed %d, which the state %s does not have"
              .formatted(seed, counters));
    }
    epoch = saved;
  }

  @Override
  public int getBatchSize() {
    return batchSize;
  }

  /**
   * Begins an epoch. All ranks call this at the same place among their other calls of the group,
   * unless the sampler does not shuffle.
   *
   * @param dataset a data set of at most {@link Integer#MAX_VALUE} samples, the same on all ranks
   * @return the batches of this rank
   * @throws IllegalStateException on all ranks, if they begin different epochs
   * @throws TuttiException if the group fails, as it does where other ranks make another call
   */
  @Override
  public Iterator<List<Long>> sample(RandomAccessDataset dataset) {
    if (group != null && shuffled) {
      compareEpochs(group);
    }
    int[] order = order(Math.toIntExact(dataset.size()), epoch++);
    long samples =
        tailDropped
            ? order.length / ((long) size * batchSize) * batchSize
            : Math.ceilDiv(order.length, size);
    return new Batches(order, samples);
  }

  private void compareEpochs(ProcessGroup all) {
    Tensor epochs = Tensor.allocate(DType.INT64, size);
    all.allGatherInto(epochs, Tensor.of(epoch));
    for (int other = 0; other < size; other++) {
      if (epochs.getLong(other) != epoch) {
        throw new IllegalStateException(
            ("rank %d begins epoch %d and rank %d begins epoch %d; read the sampler equally often"
                    + " on all ranks, or call setEpoch before")
                .formatted(rank, epoch, other, epochs.getLong(other)));
      }
    }
  }

  private int[] order(int count, long ofEpoch) {
    int[] order = new int[count];
    Random random = new Random(seed + ofEpoch * GOLDEN_RATIO);
    for (int i = 0; i < count; i++) {
      int other = shuffled ? random.nextInt(i + 1) : i;
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }

  private final class Batches implements Iterator<List<Long>> {
    private final int[] order;
    private final long samples;
    private long next;

    Batches(int[] order, long samples) {
      this.order = order;
      this.samples = samples;
    }

    @Override
    public boolean hasNext() {
      return next < samples;
    }

    @Override
    public List<Long> next() {
      if (!hasNext()) {
        throw new NoSuchElementException("the epoch of rank " + rank + " is over");
      }
      long end = Math.min(next + batchSize, samples);
      List<Long> batch = new ArrayList<>(batchSize);
      for (; next < end; next++) {
        batch.add((long) order[Math.toIntExact((next * size + rank) % order.length)]);
      }
      return batch;
    }
  }
}
