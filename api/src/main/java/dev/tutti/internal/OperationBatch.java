package dev.tutti.internal;

import dev.tutti.AllGatherOptions;
import dev.tutti.AllReduceOptions;
import dev.tutti.Batch;
import dev.tutti.OpType;
import dev.tutti.P2pOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.ReduceScatterOptions;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.Backend;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Collects operations, checks them all before it starts any, and starts them all before it waits
 * for any.
 */
final class OperationBatch implements Batch {
  private final Group group;
  private final ReductionSpecs reductions;
  private final MovementSpecs movements;
  private final List<Function<Duration, OperationSpec>> parts = new ArrayList<>();
  private Duration timeout = ProcessGroup.GROUP_TIMEOUT;
  private boolean started;

  OperationBatch(Group group, ReductionSpecs reductions, MovementSpecs movements) {
    this.group = group;
    this.reductions = reductions;
    this.movements = movements;
  }

  @Override
  public Batch send(Tensor tensor, int peer, int tag) {
    parts.add(limit -> movements.send(tensor, peer, new P2pOptions(tag, limit, true)));
    return this;
  }

  @Override
  public Batch recv(Tensor tensor, int peer, int tag) {
    parts.add(limit -> movements.recv(tensor, peer, new P2pOptions(tag, limit, true)));
    return this;
  }

  @Override
  public Batch allReduce(Tensor tensor, ReduceOp op) {
    parts.add(
        limit ->
            reductions.allReduce(
                tensor, AllReduceOptions.DEFAULT.withReduceOp(op).withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch allGatherInto(Tensor output, Tensor input) {
    parts.add(limit -> movements.allGatherInto(output, input, new AllGatherOptions(limit, true)));
    return this;
  }

  @Override
  public Batch reduceScatterInto(Tensor output, Tensor input, ReduceOp op) {
    parts.add(
        limit ->
            reductions.reduceScatterInto(output, input, new ReduceScatterOptions(op, limit, true)));
    return this;
  }

  @Override
  public Batch timeout(Duration newTimeout) {
    timeout = newTimeout;
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
      throw new IllegalStateException("a batch runs once; start a new one");
    }
    started = true;
    group.ensureUsable(OpType.COALESCED);
    List<OperationSpec> specs = new ArrayList<>();
    parts.forEach(part -> specs.add(part.apply(timeout)));
    List<Backend> begun = new ArrayList<>();
    List<Work> works = new ArrayList<>();
    try {
      for (Backend backend : Job.distinct(group.backends.values())) {
        backend.beginBatch();
        begun.add(backend);
      }
      specs.forEach(spec -> works.add(group.runner.submit(spec)));
    } finally {
      begun.forEach(Backend::endBatch);
    }
    return new BatchWork(works, group);
  }
}
