package dev.tutti.runtime.operation;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.WaitInterruptedException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Several works as one: it is done when all are, and failed when one is. */
public final class BatchWork implements Work {
  private final List<Work> works;
  private final OperationOwner owner;
  private final Time time;
  private final long startedNanos;

  public BatchWork(List<Work> works, OperationOwner owner, Time time) {
    this.time = time;
    this.startedNanos = time.nanoTime();
    this.works = List.copyOf(works);
    this.owner = owner;
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
    forAll(Work::await);
  }

  /** Waits as {@link #await()} does, even if interrupted. */
  public void awaitUninterrupted() {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          await();
          return;
        } catch (WaitInterruptedException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public boolean await(Duration timeout) {
    long limit = time.deadline(timeout);
    return allEnd(work -> work.await(time.left(limit)));
  }

  @Override
  public void synchronize() {
    forAll(Work::synchronize);
  }

  private void forAll(Consumer<Work> step) {
    boolean _ =
        allEnd(
            work -> {
              step.accept(work);
              return true;
            });
  }

  /**
   * Applies a step, which returns whether a work ended, to all works; then, if all have ended,
   * throws the first exception thrown by any of them. An interrupt stops this at once.
   */
  private boolean allEnd(Predicate<Work> step) {
    RuntimeException first = null;
    boolean ended = true;
    for (Work work : works) {
      try {
        ended &= step.test(work);
      } catch (WaitInterruptedException e) {
        throw e;
      } catch (RuntimeException e) {
        first = join(first, e);
      }
    }
    if (ended && first != null) {
      throw first;
    }
    return ended;
  }

  /**
   * Returns the first exception with the other suppressed; an exception thrown several times is
   * added once.
   */
  private static RuntimeException join(@Nullable RuntimeException first, RuntimeException other) {
    if (first == null) {
      return other;
    }
    if (!other.equals(first) && !Arrays.asList(first.getSuppressed()).contains(other)) {
      first.addSuppressed(other);
    }
    return first;
  }

  @Override
  public void blockCurrentStream(String deviceType) {
    works.forEach(work -> work.blockCurrentStream(deviceType));
  }

  @Override
  public CompletableFuture<List<Tensor>> toCompletableFuture() {
    CompletableFuture<?>[] parts =
        works.stream().map(Work::toCompletableFuture).toArray(CompletableFuture<?>[]::new);
    CompletableFuture<List<Tensor>> given = new CompletableFuture<>();
    CompletableFuture<Void> _ =
        CompletableFuture.allOf(parts)
            .whenComplete(
                (done, error) -> {
                  if (error == null) {
                    given.complete(result());
                  } else {
                    given.completeExceptionally(firstOf(parts));
                  }
                });
    return given;
  }

  private static Throwable firstOf(CompletableFuture<?>[] parts) {
    return Arrays.stream(parts)
        .filter(CompletableFuture::isCompletedExceptionally)
        .map(CompletableFuture::exceptionNow)
        .findFirst()
        .orElseThrow();
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
    return OpType.BATCH;
  }

  @Override
  public Duration duration() {
    return works.stream()
        .map(Work::duration)
        .max(Duration::compareTo)
        .orElse(Duration.ofNanos(time.nanoTime() - startedNanos));
  }

  @Override
  public void abort() {
    if (!isCompleted()) {
      owner.abort("a batch was aborted through its Work");
    }
  }
}
