package dev.tutti.gradients;

import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A bucket and its memory. */
final class Bucket implements GradientBucket {
  private static final CallOptions BESIDE_BACKWARD = CallOptions.DEFAULT.withComputationBeside();

  private final int index;
  private final boolean last;
  private final List<Integer> parameters;
  private final Tensor tensor;
  private final BucketAllocator allocator;
  private final MarkedStreams streams;
  private final List<Tensor> gradients;
  private final CallOptions callOptions;
  private final IdentityHashMap<GradientHook, Object> states = new IdentityHashMap<>();
  private ReduceOp mean = ReduceOp.AVG;
  private long step;

  Bucket(
      int index,
      boolean last,
      List<Integer> parameters,
      Tensor tensor,
      ParameterList list,
      BucketAllocator allocator,
      @Nullable Lane lane,
      boolean isBesideBackward) {
    this.index = index;
    this.last = last;
    this.parameters = parameters;
    this.tensor = tensor;
    this.allocator = allocator;
    this.streams = new MarkedStreams(lane);
    this.callOptions = isBesideBackward ? BESIDE_BACKWARD : CallOptions.DEFAULT;
    if (lane != null) {
      lane.keep(tensor);
    }
    List<Tensor> views = new ArrayList<>();
    long start = 0;
    for (int parameter : parameters) {
      Tensor like = list.get(parameter);
      views.add(tensor.narrow(0, start, like.numel()).view(like.shape()));
      start += like.numel();
    }
    this.gradients = List.copyOf(views);
  }

  /** Returns the streams in which its gradients are written. */
  MarkedStreams streams() {
    return streams;
  }

  /** Sets the parameters of the next reduction; called by the thread that makes it. */
  void begin(long newStep, ReduceOp newMean) {
    step = newStep;
    mean = newMean;
  }

  @Override
  public int index() {
    return index;
  }

  @Override
  public boolean isLast() {
    return last;
  }

  @Override
  public Tensor tensor() {
    return tensor;
  }

  @Override
  public BucketAllocator allocator() {
    return allocator;
  }

  @Override
  public List<Tensor> gradients() {
    return gradients;
  }

  @Override
  public List<Integer> parameters() {
    return parameters;
  }

  @Override
  public ReduceOp mean() {
    return mean;
  }

  @Override
  public CallOptions callOptions() {
    return callOptions;
  }

  @Override
  public long step() {
    return step;
  }

  @Override
  @SuppressWarnings("unchecked") // each hook requests the type that it put in
  public <S> S state(GradientHook hook, Function<? super GradientBucket, ? extends S> create) {
    Object state = states.get(hook);
    if (state == null) {
      state = create.apply(this);
      states.put(hook, state);
    }
    return (S) state;
  }

  @Override
  public String toString() {
    return "bucket " + index + " of " + parameters.size() + " gradients, " + tensor.describe();
  }
}
