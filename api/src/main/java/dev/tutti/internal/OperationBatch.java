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
 * Collects operations; checks them all before it starts any, and starts all before it waits for
 * any.
 */
final class OperationBatch implements Batch {
  private final TuttiProcessGroup processGroup;
  private final Group group;
  private final List<Function<Duration, OperationSpec>> calls = new ArrayList<>();
  private Duration timeout = ProcessGroup.GROUP_TIMEOUT;
  private boolean started;

  OperationBatch(TuttiProcessGroup processGroup, Group group) {
    this.processGroup = processGroup;
    this.group = group;
  }

  @Override
  public Batch send(Tensor tensor, int peer, int tag) {
    calls.add(
        limit ->
            processGroup.sendSpec(
                tensor, peer, P2pOptions.DEFAULT.withTag(tag).withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch recv(Tensor tensor, int peer, int tag) {
    calls.add(
        limit ->
            processGroup.recvSpec(
                tensor, peer, P2pOptions.DEFAULT.withTag(tag).withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch allReduce(Tensor tensor, ReduceOp op) {
    calls.add(
        limit ->
            processGroup.allReduceSpec(
                tensor, AllReduceOptions.DEFAULT.withReduceOp(op).withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch allGatherInto(Tensor output, Tensor input) {
    calls.add(
        limit ->
            processGroup.allGatherIntoSpec(
                output, input, AllGatherOptions.DEFAULT.withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch reduceScatterInto(Tensor output, Tensor input, ReduceOp op) {
    calls.add(
        limit ->
            processGroup.reduceScatterIntoSpec(
                output,
                input,
                ReduceScatterOptions.DEFAULT.withReduceOp(op).withTimeout(limit).withAsync()));
    return this;
  }

  @Override
  public Batch timeout(Duration newTimeout) {
    timeout = newTimeout;
    return this;
  }

  @Override
  public void run() {
    start().await();
  }

  @Override
  public Work start() {
    if (started) {
      throw new IllegalStateException("a batch runs once; start a new one");
    }
    started = true;
    group.ensureUsable(OpType.COALESCED);
    List<Backend> backends = group.backends.values().stream().map(BoundBackend::backend).toList();
    List<OperationSpec> specs = calls.stream().map(call -> call.apply(timeout)).toList();
    List<Work> works = new ArrayList<>();
    backends.forEach(Backend::beginBatch);
    try {
      for (OperationSpec spec : specs) {
        works.add(group.submit(spec));
      }
    } finally {
      backends.forEach(Backend::endBatch);
    }
    return new BatchWork(works, group);
  }
}
