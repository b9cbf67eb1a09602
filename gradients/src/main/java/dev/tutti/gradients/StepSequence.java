package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The collectives of a step, in the one order in which all ranks run them. */
final class StepSequence {
  /*
   * A step consists of the count of ranks that have inputs, if the options say so; the buckets
   * by index, each as soon as none of its gradients is missing; and, once a thread awaits the step,
   * the exchange of used parameters and, after the first step, the new buckets. A full bucket
   * therefore waits for those before it, as every rank must run the same collectives in the same
   * order.
   *
   * One thread at a time calls advance(), which does as much as it can. "position" is the next
   * thing to do, and only that thread writes it, except for reset(), which is called when the step
   * is done and writes it last: from then on, that thread may look at the marks of the next step.
   * The thread that fills the bucket at the position wakes that thread. Four accesses are volatile,
   * so that at least one side sees the other: the last mark of a bucket and the read of the
   * position there, and the write of the position and the read of the missing marks here.
   */
  private static final int START = -1;
  private static final int DONE = Integer.MAX_VALUE;

  private final ProcessGroup group;
  private final ParameterList parameters;
  private final ReducerOptions options;
  private final Marks marks;
  private final StepFailure failure;
  private final UnevenInputs uneven;
  private final UsedParameters used;
  private final ParameterDigest digest;
  private final Lanes lanes;
  private final BucketReducer reducer;
  private final BucketRebuild rebuild;
  private final @Nullable List<Tensor> copied;

  private volatile BucketMemory memory;
  private volatile int position;
  private volatile boolean awaited;
  private volatile long step = 1;
  private ReduceOp mean = ReduceOp.AVG;
  private int active;
  private long ownSteps;

  StepSequence(
      ProcessGroup group,
      ParameterList parameters,
      ReducerOptions options,
      Marks marks,
      StepClock clock,
      StepFailure failure,
      Lanes lanes) {
    this.group = group;
    this.parameters = parameters;
    this.options = options;
    this.marks = marks;
    this.failure = failure;
    this.lanes = lanes;
    this.uneven = new UnevenInputs(group, options.divisor());
    this.used = new UsedParameters(group, options.unusedParameters(), parameters.count());
    this.digest = new ParameterDigest(group, parameters, options);
    this.active = group.size();
    this.copied = options.gradients();
    this.reducer = new BucketReducer(group, parameters, options, used, clock, failure);
    this.rebuild = new BucketRebuild(group, parameters, options, lanes);
    this.memory = rebuild.first();
    this.position = first();
    marks.reset(memory);
  }

  private int first() {
    return uneven.isAllowed() ? START : 0;
  }

  BucketMemory memory() {
    return memory;
  }

  /** Returns the number of the current or next step, starting at 1. */
  long step() {
    return step;
  }

  boolean isDone() {
    return position == DONE;
  }

  boolean isUsed(int parameter) {
    return used.isUsed(parameter);
  }

  boolean allowsUnused() {
    return used.isExchanged();
  }

  boolean allowsUnevenInputs() {
    return uneven.isAllowed();
  }

  /** Returns whether the step waits for its first mark. */
  boolean awaitsStart() {
    return position == START;
  }

  /**
   * Refuses to begin a step in a stream that is being captured into a graph, if a replay would not
   * do what the step does.
   *
   * @throws IllegalStateException if so, with the reason
   */
  void requireCapturable() {
    if (lanes.isCapturing()) {
      String reason = CaptureRule.reasonAgainst(parameters, options, step);
      if (reason != null) {
        throw new IllegalStateException(
            "step %d of rank %d cannot be captured into a graph: %s"
                .formatted(step, group.rank(), reason));
      }
    }
  }

  /** Notes that the calling thread's current stream writes a gradient. */
  void note(int parameter) {
    memory.of(parameter).streams().addCurrent();
  }

  /**
   * Puts a gradient into its bucket; returns true if the thread that advances waits for that
   * bucket.
   */
  boolean add(int parameter) {
    BucketMemory now = memory;
    if (copied != null) {
      options.allocator().copy(now.gradient(parameter), copied.get(parameter));
    }
    return fill(now, parameter);
  }

  private boolean fill(BucketMemory now, int parameter) {
    int bucket = now.bucketOf(parameter);
    return marks.add(bucket) == 0 && position == bucket;
  }

  /**
   * Adds the gradients that are missing in this pass: zeros, or what earlier passes left if that
   * counts.
   */
  void addUnused() {
    BucketMemory now = memory;
    for (int i = 0; i < parameters.count(); i++) {
      if (marks.isMarked(i)) {
        continue;
      }
      MarkedStreams streams = now.of(i).streams();
      if (!options.accumulation() && !marks.isMarkedSinceReduction(i)) {
        options.allocator().zero(now.gradient(i));
      } else if (copied != null) {
        streams.gather();
        options.allocator().copy(now.gradient(i), copied.get(i));
      }
      streams.addCurrent();
      fill(now, i);
    }
  }

  /** Lets the step end once its buckets are reduced. */
  void allowEnd() {
    awaited = true;
  }

  /** Does everything that can be done now. */
  void advance() {
    try {
      while (!failure.isThere() && advanceOne()) {}
    } catch (GradientException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw failed(e);
    }
  }

  /**
   * Does the next thing; returns false if that is not yet possible, or if there is nothing left to
   * do.
   */
  private boolean advanceOne() {
    int now = position;
    BucketMemory buckets = memory;
    if (now == START) {
      if (!marks.isBegun()) {
        return false;
      }
      begin(true);
      position = 0;
    } else if (now < buckets.count()) {
      if (marks.missing(now) > 0) {
        return false;
      }
      reduce(buckets.bucket(now), true);
      position = now + 1;
    } else if (now != DONE && awaited) {
      end(true);
      position = DONE;
    } else {
      return false;
    }
    return true;
  }

  private GradientException failed(Throwable e) {
    return failure.fail(
        "step %d failed outside the reduction of its buckets: %s".formatted(step, e), -1, e);
  }

  /** Prepares for the next step; called when this one is done. */
  void reset() {
    marks.reset(memory);
    marks.nextPass(true);
    awaited = false;
    ownSteps++;
    nextStep();
    position = first();
  }

  private void nextStep() {
    long next = step + 1;
    step = next;
  }

  private int begin(boolean hasInputs) {
    active = uneven.count(hasInputs);
    mean = active == 0 ? ReduceOp.AVG : uneven.mean(active);
    return active;
  }

  private void reduce(Bucket bucket, boolean hasInputs) {
    bucket.begin(step, mean);
    DeviceStream before = bucket.streams().enter();
    try {
      reducer.reduce(bucket, step, hasInputs);
    } finally {
      MarkedStreams.leave(before);
    }
  }

  private void end(boolean hasInputs) {
    if (used.isExchanged()) {
      for (int i = 0; i < parameters.count(); i++) {
        used.set(i, hasInputs && marks.isMarkedSinceReduction(i));
      }
      used.exchange();
      for (int i = 0; hasInputs && i < memory.count(); i++) {
        DeviceStream before = memory.bucket(i).streams().use();
        try {
          reducer.copyOut(memory.bucket(i));
        } finally {
          MarkedStreams.leave(before);
        }
      }
    }
    if (active == group.size() && digest.isDue(step)) {
      String difference = digest.difference();
      if (difference != null) {
        throw failure.fail("step %d: %s".formatted(step, difference), -1, null);
      }
    }
    if (rebuild.isDue()) {
      BucketMemory old = memory;
      memory = rebuild.further(old, hasInputs ? marks.order() : parameters.lastFirst());
      if (memory != old) {
        old.close();
      }
    }
  }

  /**
   * Takes part in the steps of the others, with zeros, until no rank has inputs; then all ranks
   * take over the parameters and buffers of a rank that had inputs for the longest, and begin again
   * with gradients of zero. Called between steps.
   */
  void shadow() {
    requireCapturable();
    try {
      shadowAll();
    } catch (GradientException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw failed(e);
    }
  }

  private void shadowAll() {
    while (begin(false) > 0) {
      lanes.beforeCurrent();
      BucketMemory now = memory;
      for (int i = 0; i < now.count(); i++) {
        options.allocator().zero(now.bucket(i).tensor());
        now.bucket(i).streams().addCurrent();
        reduce(now.bucket(i), false);
      }
      end(false);
      marks.reset(memory);
      nextStep();
    }
    int last = uneven.lastRank(ownSteps);
    ParameterAgreement.broadcast(group, parameters.all(), last);
    ParameterAgreement.broadcast(group, options.buffers(), last);
    zero();
    marks.nextPass(true);
    mean = ReduceOp.AVG;
    ownSteps = 0;
  }

  /** Sets all gradients to zero; called between steps. */
  void zero() {
    lanes.beforeCurrent();
    BucketMemory now = memory;
    for (int i = 0; i < now.count(); i++) {
      options.allocator().zero(now.bucket(i).tensor());
    }
  }

  void close() {
    memory.close();
    lanes.close();
  }
}
