package dev.tutti.internal;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** Is several works as one: done when all are, failed when one is. */
final class BatchWork implements Work {
  private final List<Work> works;
  private final Group group;
  private final long startedNanos = System.nanoTime();

  BatchWork(List<Work> works, Group group) {
    this.works = List.copyOf(works);
    this.group = group;
  }

  @Override
  public WorkState state() {
    WorkState worst = WorkState.COMPLETED;
    for (Work work : works) {
      WorkState state = work.state();
      if (!state.isFinal()) {
        return WorkState.RUNNING;
      }
      if (worst == WorkState.COMPLETED) {
        worst = state;
      }
    }
    return worst;
  }

  @Override
  public Optional<TuttiException> exception() {
    return works.stream().map(Work::exception).flatMap(Optional::stream).findFirst();
  }

  @Override
  public void await() {
    works.forEach(Work::await);
  }

  @Override
  public boolean await(Duration timeout) {
    long limit = Deadlines.in(timeout);
    for (Work work : works) {
      if (!work.await(Deadlines.left(limit))) {
        return false;
      }
    }
    return true;
  }

  @Override
  public void synchronize() {
    works.forEach(Work::synchronize);
  }

  @Override
  public void blockCurrentStream() {
    works.forEach(Work::blockCurrentStream);
  }

  @Override
  public CompletableFuture<List<Tensor>> toCompletableFuture() {
    CompletableFuture<?>[] parts =
        works.stream().map(Work::toCompletableFuture).toArray(CompletableFuture<?>[]::new);
    return CompletableFuture.allOf(parts).thenApply(done -> result());
  }

  @Override
  public List<Tensor> result() {
    return works.stream().flatMap(work -> work.result().stream()).toList();
  }

  @Override
  public int sourceRank() {
    throw new IllegalStateException("a batch has no single source rank");
  }

  @Override
  public long sequenceNumber() {
    return works.isEmpty() ? 0 : works.get(works.size() - 1).sequenceNumber();
  }

  @Override
  public OpType opType() {
    return OpType.COALESCED;
  }

  @Override
  public Duration duration() {
    return works.stream()
        .map(Work::duration)
        .max(Duration::compareTo)
        .orElse(Duration.ofNanos(System.nanoTime() - startedNanos));
  }

  @Override
  public void abort() {
    if (!isCompleted()) {
      group.abort("a batch was aborted by its work");
    }
  }
}
