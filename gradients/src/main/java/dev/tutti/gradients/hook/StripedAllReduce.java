package dev.tutti.gradients.hook;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * A hook that averages equal parts of a large bucket concurrently, each with a group and a thread
 * of its own. A single thread cannot saturate a fast network through sockets; c10d's Gloo uses two
 * threads for the same reason. Each stripe needs a core of its own while it reduces.
 *
 * <p>A hook belongs to a single reducer of host memory; nothing is allocated after the first use of
 * a bucket. Close it after the reducer.
 */
public final class StripedAllReduce implements GradientHook, AutoCloseable {
  /** The smallest part worth splitting off: smaller ones take longer to hand over than to send. */
  private static final long SMALLEST_BYTES = 1L << 20;

  private final Stripe[] others;
  private final Function<GradientBucket, Tensor[]> split;

  private StripedAllReduce(Stripe[] others) {
    this.others = others;
    this.split = this::split;
  }

  /**
   * Creates the groups of all stripes but one, which uses the reducer's group. All ranks of the
   * group must call it.
   *
   * @param group the reducer's group
   * @param stripes the number of parts of a bucket, at least 1, the same on all ranks; two saturate
   *     most networks
   * @throws IllegalArgumentException if the number of stripes is less than 1
   */
  public static StripedAllReduce over(ProcessGroup group, int stripes) {
    if (stripes < 1) {
      throw new IllegalArgumentException("a bucket needs at least one stripe, not " + stripes);
    }
    List<Stripe> others = new ArrayList<>();
    for (int i = 1; i < stripes; i++) {
      others.add(new Stripe(group.split(0, group.rank()).orElseThrow(), i));
    }
    return new StripedAllReduce(others.toArray(Stripe[]::new));
  }

  /**
   * {@inheritDoc}
   *
   * @throws IllegalArgumentException if a parameter is on a device
   */
  @Override
  public void requireSupported(List<Tensor> parameters) {
    for (int i = 0; i < parameters.size(); i++) {
      if (!parameters.get(i).device().isCpu()) {
        throw new IllegalArgumentException(
            "StripedAllReduce reduces on the host only, but parameter %d is %s"
                .formatted(i, parameters.get(i).describe()));
      }
    }
  }

  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    Tensor[] own = bucket.state(this, split);
    for (int i = 1; i < own.length; i++) {
      others[i - 1].begin(own[i], bucket.mean());
    }
    Throwable failure = null;
    try {
      group.allReduce(own[0], bucket.mean());
    } catch (RuntimeException | Error e) {
      failure = e;
      for (Stripe other : others) {
        other.abort(e);
      }
    }
    for (int i = 1; i < own.length; i++) {
      Throwable ofStripe = others[i - 1].await();
      failure = failure == null ? ofStripe : failure;
    }
    if (failure instanceof Error error) {
      throw error;
    }
    if (failure instanceof RuntimeException exception) {
      throw exception;
    }
  }

  private Tensor[] split(GradientBucket bucket) {
    Tensor tensor = bucket.tensor();
    long most = Math.max(1, tensor.byteSize() / SMALLEST_BYTES);
    int count = (int) Math.min(others.length + 1L, most);
    Tensor[] cut = new Tensor[count];
    for (int i = 0; i < count; i++) {
      long start = tensor.numel() * i / count;
      cut[i] = tensor.narrow(0, start, tensor.numel() * (i + 1) / count - start);
    }
    return cut;
  }

  /** Ends the threads and closes the groups of the stripes. Further calls have no effect. */
  @Override
  public void close() {
    Arrays.stream(others).forEach(Stripe::close);
  }
}
