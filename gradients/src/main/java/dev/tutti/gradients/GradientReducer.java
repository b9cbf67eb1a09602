package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A reducer that averages gradients over all ranks while the backward pass continues (c10d: {@code
 * Reducer}, which is {@code DistributedDataParallel} without autograd).
 *
 * <p>In each step, the backward pass writes every gradient into {@link #gradient} and reports it
 * with {@link #ready}; {@link #await} returns when all of them have been averaged. A bucket of
 * gradients is reduced as soon as it and all buckets before it are full. All ranks must take the
 * same steps.
 *
 * <p>Any thread may mark gradients as ready, in any order, and several threads may do so at a time.
 * The other methods may be called by only one thread at a time, between steps or at their end. An
 * interrupt ends none of them, and the thread stays interrupted. From the first mark of a step to
 * the end of {@link #await}, the group runs the reducer's collectives, so the program must not run
 * others on it in the meantime; it may use another group. In the steady state, nothing is
 * allocated.
 *
 * <p>A failure on one rank during a step aborts the group, since the other ranks wait for its
 * gradients, and every rank gets a {@link GradientException} that quotes that rank.
 *
 * <p>Gradients on a device are reduced in a stream of the reducer, while the device continues with
 * the backward pass. That stream waits for the streams that were current when the bucket's
 * gradients were marked; {@link #await} lets the caller's current stream wait for it, and returns
 * before the device is done. The program must order the streams of a step's backward pass after
 * that of the previous {@link #await}. After two steps, a whole step can be captured into a CUDA
 * graph, from zeroing to the optimizer. {@link ReducerOptions#withoutOverlap} says what is
 * different without such a stream.
 */
public final class GradientReducer implements AutoCloseable {
  private final ProcessGroup group;
  private final ParameterList parameters;
  private final StepFailure failure;
  private final Marks marks;
  private final StepClock clock = new StepClock();
  private final StepTurn turn;
  private final Lanes lanes;

  /** Whether a collective may fail on its device after the call that enqueued it. */
  private final boolean onDevices;

  private final StepSequence sequence;
  private final StepRunner runner;
  private final AtomicBoolean awaiting = new AtomicBoolean();
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Reused, so that steps allocate nothing. */
  private final NoSync noSync = new NoSync();

  private final AtomicInteger openNoSyncs = new AtomicInteger();

  /**
   * Creates a reducer with the default options, as {@link #GradientReducer(ProcessGroup, List,
   * ReducerOptions)} does.
   *
   * @param group the group of all ranks that train the model
   * @param parameters the parameters of the model
   */
  public GradientReducer(ProcessGroup group, List<Tensor> parameters) {
    this(group, parameters, ReducerOptions.DEFAULT);
  }

  /**
   * Creates a reducer: compares the parameters of all ranks, copies rank 0's parameters and buffers
   * to all ranks, and allocates buckets. All ranks of the group must call it.
   *
   * @param group the group of all ranks that train the model, which needs a backend for the host
   * @param parameters the parameters of the model, dense, of any types and devices, in the same
   *     order on all ranks
   * @param options the options of the reducer
   * @throws GradientException on all ranks, with the first difference, if their parameters, buffers
   *     or options differ; the group stays usable
   * @throws IllegalArgumentException if the parameters and the options do not match
   */
  public GradientReducer(ProcessGroup group, List<Tensor> parameters, ReducerOptions options) {
    this(group, parameters, options, parameters.stream().allMatch(each -> each.device().isCpu()));
  }

  /** Creates a reducer that uses a thread of its own, or the threads of its callers. */
  GradientReducer(
      ProcessGroup group, List<Tensor> parameters, ReducerOptions options, boolean ownThread) {
    this.group = group;
    this.parameters = new ParameterList(parameters, options.names());
    this.parameters.requireFitting(group, options);
    ParameterAgreement.require(group, this.parameters, options);
    ParameterAgreement.broadcast(group, parameters, 0);
    ParameterAgreement.broadcast(group, options.buffers(), 0);
    turn = StepTurn.of(group);
    failure = new StepFailure(group);
    marks = new Marks(parameters.size());
    onDevices = parameters.stream().anyMatch(each -> !each.device().isCpu());
    lanes = Lanes.of(group, this.parameters, options);
    try {
      sequence = new StepSequence(group, this.parameters, options, marks, clock, failure, lanes);
    } catch (RuntimeException | Error e) {
      lanes.close();
      throw e;
    }
    String name = "tutti-gradients-" + group.name() + "-" + group.rank();
    runner =
        ownThread
            ? new CommunicationThread(name, sequence, failure)
            : new InlineRunner(sequence, failure);
  }

  /**
   * Returns the memory of a gradient, which is part of a bucket: the backward pass writes or adds
   * to it, and after {@link #await} it holds the mean. The memory is zero at first and after {@link
   * #join}; otherwise the reducer zeroes it only if a parameter was not used, and not even then
   * with {@link ReducerOptions#withAccumulation}.
   *
   * <p>The view is valid until the end of the first step, which may form buckets anew and may be a
   * step within {@link #join}; a view obtained after that is valid until the reducer is closed. An
   * outdated view throws {@link IllegalStateException} when it is read or written. With {@link
   * ReducerOptions#withoutRebuild}, the first view stays valid.
   *
   * @param index the index of the parameter
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
   * Marks a gradient as ready in this backward pass, which may start the reduction of its bucket.
   * The gradient must not be written to after this call.
   *
   * @param index the index of the parameter
   * @throws GradientException if the gradient was already marked in this pass, another reducer of
   *     the group is in a step, or the reducer has failed
   * @throws IllegalStateException if the current stream is being captured into a graph, and this
   *     step cannot be, as the message says; the reducer stays usable
   * @throws IndexOutOfBoundsException if there is no such parameter
   */
  public void ready(int index) {
    checked(index);
    check();
    if (isSynchronizing() && !marks.isBegun()) {
      sequence.requireCapturable();
    }
    if (!marks.mark(index)) {
      throw failed(
          "step %d: the gradient of %s was marked twice"
              .formatted(sequence.step(), parameters.describe(index)),
          index);
    }
    sequence.note(index);
    if (!isSynchronizing()) {
      return;
    }
    boolean begins = marks.begin();
    if (begins) {
      begin();
    }
    clock.ready();
    if (sequence.add(index) || (begins && sequence.awaitsStart())) {
      runner.wake();
    }
  }

  /**
   * Ends a backward pass and waits until all gradients are means over all ranks; within {@link
   * #noSync} it only ends the pass. On devices, later work in the current stream finds the means.
   * If their reduction fails there, later calls throw, and so does the group.
   *
   * @throws GradientException naming the parameters, if a gradient is missing, or if the step
   *     failed here or on another rank
   */
  public void await() {
    check();
    if (!awaiting.compareAndSet(false, true)) {
      throw new IllegalStateException("another thread is already waiting in await()");
    }
    try {
      if (isSynchronizing()) {
        awaitMeans();
      } else {
        marks.nextPass(false);
      }
    } finally {
      awaiting.set(false);
    }
  }

  private void begin() {
    if (!turn.take(this)) {
      throw failed(
          ("step %d began before another reducer of group %s ended its step in await(); give each"
                  + " of them a group of its own (ProcessGroup.split)")
              .formatted(sequence.step(), group.name()),
          -1);
    }
    clock.begin();
  }

  private void awaitMeans() {
    long since = System.nanoTime();
    if (!marks.isBegun()) {
      sequence.requireCapturable();
    }
    if (marks.begin()) {
      begin();
      clock.ready();
    }
    if (marks.count() < parameters.count()) {
      requireUnusedAllowed();
      sequence.addUnused();
    }
    sequence.allowEnd();
    runner.wake();
    runner.awaitDone();
    check();
    lanes.beforeCurrent();
    clock.end(since, sequence.memory().count());
    StepEvents.record(group.name(), group.rank(), clock);
    sequence.reset();
    turn.release(this);
  }

  private void requireUnusedAllowed() {
    if (!sequence.allowsUnused()) {
      List<Integer> missing = marks.unmarked();
      throw failed(
          ("step %d: the gradient of %s is missing; call ready for it, or allow steps without it"
                  + " with ReducerOptions.withUnusedParameters")
              .formatted(sequence.step(), parameters.describe(missing)),
          missing.size() == 1 ? missing.getFirst() : -1);
    }
  }

  /**
   * Lets backward passes accumulate gradients on each rank without reducing them, until the
   * registration is closed. Each pass ends with {@link #await}. The first pass after that reduces
   * the accumulated sum. If several registrations are open, the first pass after closing the last
   * one does. Do not close a registration again after a later call of this method.
   *
   * @throws IllegalStateException if a pass has begun; closing the registration then throws it, too
   */
  public Registration noSync() {
    check();
    requireBetweenPasses("noSync()");
    NoSync opened = noSync.isOpen ? new NoSync() : noSync;
    opened.isOpen = true;
    openNoSyncs.getAndIncrement();
    return opened;
  }

  private final class NoSync implements Registration {
    private boolean isOpen;

    @Override
    public void close() {
      if (isOpen) {
        requireBetweenPasses("the end of noSync()");
        isOpen = false;
        openNoSyncs.getAndDecrement();
      }
    }
  }

  /** Returns whether the next pass is reduced, which is so outside {@link #noSync}. */
  public boolean isSynchronizing() {
    return openNoSyncs.get() == 0;
  }

  /**
   * Reports that this rank has no inputs left, and takes part in the steps of the others with zeros
   * until no rank has any inputs. Afterwards, all ranks have the parameters and buffers of a rank
   * that took the most steps, the highest such rank, and may continue together. The gradients in
   * the buckets are zero, and what passes within {@link #noSync} added is forgotten.
   *
   * @throws IllegalStateException if the options do not allow uneven inputs, or a pass has begun
   * @throws GradientException if a step fails, here or on another rank
   */
  public void join() {
    check();
    if (!sequence.allowsUnevenInputs()) {
      throw new IllegalStateException("join() requires ReducerOptions.withUnevenInputs");
    }
    requireBetweenPasses("join()");
    sequence.shadow();
  }

  private void requireBetweenPasses(String what) {
    if (marks.count() > 0) {
      throw new IllegalStateException(
          what + " is not allowed during a backward pass; call await() first");
    }
  }

  /** Sets all gradients to zero, in the memory of the buckets. Must be called between steps. */
  public void zeroGradients() {
    check();
    sequence.zero();
  }

  /**
   * Returns whether any rank marked a parameter's gradient in the last step; always true unless the
   * options allow unused parameters.
   *
   * @param index the index of the parameter
   * @throws IndexOutOfBoundsException if there is no such parameter
   */
  public boolean isUsed(int index) {
    return sequence.isUsed(checked(index));
  }

  /** Returns the statistics of the last step. */
  public StepStatistics statistics() {
    return clock.last();
  }

  /** Returns the mean statistics of all steps. */
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
    if (onDevices) {
      TuttiException cause = group.failure().orElse(null);
      if (cause != null) {
        String what = "the group failed in or before step %d".formatted(sequence.step());
        throw failure.fail(what, -1, cause);
      }
    }
  }

  /**
   * Fails the current step on all ranks, for a reason that only the engine has, and returns the
   * exception to throw. May be called from any thread.
   *
   * @param reason what is wrong and what was expected, with the name of the parameter
   */
  public GradientException fail(String reason) {
    return failed("step %d: %s".formatted(sequence.step(), reason), -1);
  }

  private GradientException failed(String what, int parameter) {
    GradientException thrown = failure.fail(what, parameter, null);
    turn.release(this);
    runner.end();
    return thrown;
  }

  /**
   * Frees the buckets. The group stays open unless the reducer is closed during a step, in which
   * case the step fails on all ranks. Further calls have no effect.
   */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    if (isSynchronizing() && marks.count() > 0 && !failure.isThere()) {
      List<Integer> missing = marks.unmarked();
      GradientException _ =
          failure.fail(
              "step %d: the reducer was closed before %s"
                  .formatted(
                      sequence.step(),
                      missing.isEmpty()
                          ? "await()"
                          : "the gradient of " + parameters.describe(missing) + " was ready"),
              missing.size() == 1 ? missing.getFirst() : -1,
              null);
    }
    turn.release(this);
    if (runner.end()) {
      sequence.close();
    }
  }
}
