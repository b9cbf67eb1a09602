package dev.tutti.gradients;

import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Takes the mean of gradients over all ranks while backward continues (c10d: {@code Reducer}, which
 * is {@code DistributedDataParallel} without autograd).
 *
 * <p>A step is: backward writes each gradient into {@link #gradient} and says so by {@link #ready};
 * {@link #await} returns when all of them are means. A bucket of gradients is reduced as soon as it
 * and all buckets before it are full. All ranks take the same steps.
 *
 * <p>Any thread may mark gradients, several at a time, in any order. One thread at a time calls the
 * other methods, between or at the end of steps; an interrupt ends none of them and stays. From the
 * first mark of a step to the end of {@link #await} the group makes the reducer's collectives, so
 * the program makes no others of it meanwhile; it may use another group. In steady state nothing is
 * allocated.
 *
 * <p>What goes wrong on one rank in a step aborts the group, since the others wait for its
 * gradients, and every rank gets a {@link GradientException} with that rank's words. Gradients that
 * are not on the host are reduced in the current stream of the thread that marks the last one of a
 * bucket; the streams of all threads that mark must be one, or ordered by the program.
 */
public final class GradientReducer implements AutoCloseable {
  private final ProcessGroup group;
  private final ParameterList parameters;
  private final StepFailure failure;
  private final Marks marks;
  private final StepClock clock = new StepClock();
  private final StepSequence sequence;
  private final StepRunner runner;
  private final Registration noSync = this::synchronizeAgain;
  private final AtomicBoolean awaiting = new AtomicBoolean();
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile boolean synchronizing = true;

  /**
   * Creates a reducer with the default options, as {@link #GradientReducer(ProcessGroup, List,
   * ReducerOptions)} does.
   *
   * @param group of all ranks that train the model
   * @param parameters of the model
   */
  public GradientReducer(ProcessGroup group, List<Tensor> parameters) {
    this(group, parameters, ReducerOptions.DEFAULT);
  }

  /**
   * Compares the parameters of all ranks, copies rank 0's values and those of the buffers to all
   * ranks, and allocates buckets. All ranks of the group call it.
   *
   * @param group of all ranks that train the model; it needs a backend for the host
   * @param parameters of the model, dense, of any types and devices, in the same order on all ranks
   * @param options how to reduce
   * @throws GradientException on all ranks, if their parameters, buffers or options differ, with
   *     the first difference; the group stays usable
   * @throws IllegalArgumentException if parameters and options do not fit each other
   */
  public GradientReducer(ProcessGroup group, List<Tensor> parameters, ReducerOptions options) {
    this(group, parameters, options, parameters.stream().allMatch(each -> each.device().isCpu()));
  }

  /** Creates a reducer with a thread of its own, or one that uses those of its callers. */
  GradientReducer(
      ProcessGroup group, List<Tensor> parameters, ReducerOptions options, boolean ownThread) {
    this.group = group;
    this.parameters = new ParameterList(parameters, options.names());
    requireFitting(group, this.parameters, options);
    ParameterAgreement.require(group, this.parameters, options);
    ParameterAgreement.broadcast(group, parameters, 0);
    ParameterAgreement.broadcast(group, options.buffers(), 0);
    failure = new StepFailure(group);
    marks = new Marks(parameters.size());
    sequence = new StepSequence(group, this.parameters, options, marks, clock, failure);
    String name = "tutti-gradients-" + group.name() + "-" + group.rank();
    runner =
        ownThread
            ? new CommunicationThread(name, sequence, failure)
            : new InlineRunner(sequence, failure);
  }

  private static void requireFitting(
      ProcessGroup group, ParameterList parameters, ReducerOptions options) {
    if (!group.backends().containsKey(Device.CPU.type())) {
      throw new IllegalArgumentException(
          "the group has no backend for the host, by which ranks compare their parameters, but "
              + group.backends());
    }
    List<Tensor> gradients = options.gradients();
    if (gradients != null) {
      parameters.requireAlike(gradients);
    }
    for (int i = 0; i < parameters.count(); i++) {
      if (options.divisor() == ReducerOptions.Divisor.ACTIVE_RANKS
          && !parameters.get(i).dtype().isFloatingPoint()
          && !parameters.get(i).dtype().isComplex()) {
        throw new IllegalArgumentException(
            parameters.describe(i)
                + " is "
                + parameters.get(i).describe()
                + ", which cannot be divided by the number of active ranks");
      }
    }
  }

  /**
   * Returns the memory of a gradient, in a bucket: backward writes or adds to it, and after {@link
   * #await} it holds the mean. It is zero at first and is never set to zero by the reducer, except
   * where a parameter was not used.
   *
   * <p>It is valid until the end of the first step, which may form buckets anew, and then until the
   * reducer is closed; an older view throws {@link IllegalStateException} when it is read or
   * written. {@link ReducerOptions#withoutRebuild} keeps the first.
   *
   * @param index of the parameter
   * @throws IndexOutOfBoundsException if there is no such parameter
   */
  public Tensor gradient(int index) {
    return sequence.memory().gradient(checked(index));
  }

  /** Returns the buckets, in the order in which they are reduced. */
  public List<GradientBucket> buckets() {
    return sequence.memory().all();
  }

  /**
   * Says that a gradient of this pass of backward is there, and may start the reduction of its
   * bucket. The gradient must not be written after this.
   *
   * @param index of the parameter
   * @throws GradientException if it was marked already in this pass, or the reducer failed
   * @throws IndexOutOfBoundsException if there is no such parameter
   */
  public void ready(int index) {
    checked(index);
    check();
    if (!marks.mark(index)) {
      throw failed(
          "step %d: the gradient of %s was marked twice"
              .formatted(sequence.step(), parameters.describe(index)),
          index);
    }
    if (!synchronizing) {
      return;
    }
    boolean begins = marks.begin();
    if (begins) {
      clock.begin();
    }
    clock.ready();
    if (sequence.add(index) || (begins && sequence.awaitsStart())) {
      runner.wake();
    }
  }

  /**
   * Ends a pass of backward and waits until all gradients are means over all ranks; within {@link
   * #noSync} it only ends the pass.
   *
   * @throws GradientException if a gradient is missing, with the parameters, and if the step failed
   *     here or on another rank
   */
  public void await() {
    check();
    if (!awaiting.compareAndSet(false, true)) {
      throw new IllegalStateException("another thread awaits the step");
    }
    try {
      if (synchronizing) {
        awaitMeans();
      } else {
        marks.nextPass(false);
      }
    } finally {
      awaiting.set(false);
    }
  }

  private void awaitMeans() {
    long since = System.nanoTime();
    if (marks.begin()) {
      clock.begin();
      clock.ready();
    }
    if (marks.count() < parameters.count()) {
      requireUnusedAllowed();
      sequence.addUnused();
    }
    sequence.awaitEnd();
    runner.wake();
    runner.awaitDone();
    check();
    clock.end(since, sequence.memory().count());
    StepEvents.record(group.name(), group.rank(), clock);
    sequence.reset();
  }

  private void requireUnusedAllowed() {
    if (!sequence.allowsUnused()) {
      List<Integer> missing = marks.unmarked();
      throw failed(
          "step %d: the gradient of %s is missing; ReducerOptions.withUnusedParameters allows that"
              .formatted(sequence.step(), parameters.describe(missing)),
          missing.size() == 1 ? missing.getFirst() : -1);
    }
  }

  /**
   * Lets passes of backward add up gradients on each rank without reducing them, until the
   * registration is closed. Each pass ends with {@link #await}. The first pass after that reduces
   * the sum.
   *
   * @throws IllegalStateException if a pass has begun; closing the registration throws it, too
   */
  public Registration noSync() {
    requireBetweenPasses("noSync()");
    synchronizing = false;
    return noSync;
  }

  private void synchronizeAgain() {
    if (!synchronizing) {
      requireBetweenPasses("the end of noSync()");
      synchronizing = true;
    }
  }

  /**
   * Says that this rank has no inputs left, and takes part in the steps of the others with zeros
   * until no rank has any. Then all ranks have the parameters and buffers of the highest of the
   * ranks that took most steps, and may go on together.
   *
   * @throws IllegalStateException if the options do not have uneven inputs, or a pass has begun
   * @throws GradientException if a step fails, here or on another rank
   */
  public void join() {
    check();
    if (!sequence.allowsUnevenInputs()) {
      throw new IllegalStateException("ReducerOptions.withUnevenInputs allows join()");
    }
    requireBetweenPasses("join()");
    sequence.shadow();
  }

  private void requireBetweenPasses(String what) {
    if (marks.count() > 0) {
      throw new IllegalStateException(
          what + " must not come amid a pass of backward: await() ends it");
    }
  }

  /** Sets all gradients to zero, in the memory of the buckets. Called between steps. */
  public void zeroGradients() {
    check();
    sequence.zero();
  }

  /**
   * Tells whether any rank marked a parameter's gradient for the last step; always true unless the
   * options allow unused parameters.
   *
   * @param index of the parameter
   * @throws IndexOutOfBoundsException if there is no such parameter
   */
  public boolean isUsed(int index) {
    return sequence.isUsed(checked(index));
  }

  /** Returns what the last step took. */
  public StepStatistics statistics() {
    return clock.last();
  }

  /** Returns what steps took in the mean. */
  public StepStatistics meanStatistics() {
    return clock.mean();
  }

  private int checked(int index) {
    if (index < 0 || index >= parameters.count()) {
      throw new IndexOutOfBoundsException(
          "no parameter " + index + " among " + parameters.count() + " of rank " + group.rank());
    }
    return index;
  }

  private void check() {
    failure.check();
    if (closed.get()) {
      throw new IllegalStateException("the reducer of rank " + group.rank() + " is closed");
    }
  }

  private GradientException failed(String what, int parameter) {
    GradientException thrown = failure.fail(what, parameter, null);
    runner.end();
    return thrown;
  }

  /**
   * Frees the buckets. The group stays open, unless this comes amid a step: then the step fails on
   * all ranks. The second and later calls do nothing.
   */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    if (synchronizing && marks.count() > 0 && !failure.isThere()) {
      List<Integer> missing = marks.unmarked();
      GradientException _ =
          failure.fail(
              "step %d: the reducer was closed before %s"
                  .formatted(
                      sequence.step(),
                      missing.isEmpty()
                          ? "await()"
                          : "the gradient of " + parameters.describe(missing) + " was there"),
              missing.size() == 1 ? missing.getFirst() : -1,
              null);
    }
    if (runner.end()) {
      sequence.close();
    }
  }
}
