package dev.tutti.runtime.group;

import dev.tutti.Batch;
import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.runtime.operation.BatchWork;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Backend;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Collects operations, checks all of them before it starts any, and starts all of them before it
 * waits for any.
 */
final class OperationBatch implements Batch {
  private final Group group;
  private final OperationSpecs operations;
  private final List<Function<CallOptions, OperationSpec>> parts = new ArrayList<>();
  private CallOptions options = CallOptions.ASYNC;
  private boolean started;

  OperationBatch(Group group, OperationSpecs operations) {
    this.group = group;
    this.operations = operations;
  }

  @Override
  public Batch send(Tensor tensor, int peer, int tag) {
    return message(OpType.SEND, tensor, peer, tag);
  }

  @Override
  public Batch recv(Tensor tensor, int peer, int tag) {
    return message(OpType.RECV, tensor, peer, tag);
  }

  private Batch message(OpType op, Tensor tensor, int peer, int tag) {
    parts.add(options -> operations.message(op, tensor, peer, tag, options));
    return this;
  }

  @Override
  public Batch allReduce(Tensor tensor, ReduceOp op) {
    parts.add(options -> operations.allReduce(tensor, op, options));
    return this;
  }

  @Override
  public Batch allGatherInto(Tensor output, Tensor input) {
    parts.add(options -> operations.allGatherInto(output, input, Splits.NONE, options));
    return this;
  }

  @Override
  public Batch reduceScatterInto(Tensor output, Tensor input, ReduceOp op) {
    parts.add(options -> operations.reduceScatterInto(output, input, Splits.NONE, op, options));
    return this;
  }

  @Override
  public Batch withTimeout(Duration timeout) {
    options = options.withTimeout(timeout);
    return this;
  }

  @Override
  public void run() {
    begin().awaitUninterrupted();
  }

  @Override
  public Work start() {
    return begin();
  }

  private BatchWork begin() {
    if (started) {
      throw new IllegalStateException("a batch can be started only once; create a new one");
    }
    started = true;
    group.ensureUsable(OpType.BATCH);
    List<OperationSpec> specs = new ArrayList<>();
    parts.forEach(part -> specs.add(part.apply(options)));
    List<Backend> begun = new ArrayList<>();
    List<Work> works = new ArrayList<>();
    try {
      for (Backend backend : BoundBackend.distinct(group.backends.values())) {
        backend.beginBatch();
        begun.add(backend);
      }
      specs.forEach(spec -> works.add(group.runner.submit(spec)));
    } catch (RuntimeException | Error e) {
      endBatches(begun);
      endStarted(works, e);
      throw e;
    }
    endBatches(begun);
    return new BatchWork(works, group, group.identity.time());
  }

  private static void endBatches(List<Backend> begun) {
    begun.forEach(Backend::endBatch);
  }

  /** Ends what was started before a part was refused, because nobody else can wait for it. */
  private void endStarted(List<Work> works, Throwable cause) {
    if (works.stream().allMatch(Work::isCompleted)) {
      return;
    }
    group.abort("a batch was started in part: " + cause);
    try {
      new BatchWork(works, group, group.identity.time()).awaitUninterrupted();
    } catch (TuttiException e) {
      cause.addSuppressed(e);
    }
  }
}
