package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class BatchWorkTest {
  private final TuttiException first = new TuttiException("the first");
  private final TuttiException second = new TuttiException("the second");

  /** A part that ends when a thread waits for it, but not if the wait has a timeout of zero. */
  private static final class Part {
    private final @Nullable TuttiException failure;
    private WorkState state = WorkState.RUNNING;

    Part(@Nullable TuttiException failure) {
      this.failure = failure;
    }

    Work work() {
      return (Work)
          Proxy.newProxyInstance(
              Work.class.getClassLoader(),
              new Class<?>[] {Work.class},
              (proxy, method, arguments) ->
                  switch (method.getName()) {
                    case "state" -> state;
                    case "isCompleted" -> state.isFinal();
                    case "synchronize" -> end();
                    case "await" ->
                        method.getParameterCount() == 0 || ((Duration) arguments[0]).isPositive()
                            ? end()
                            : state.isFinal();
                    default -> throw new UnsupportedOperationException(method.getName());
                  });
    }

    private Object end() {
      state = failure == null ? WorkState.COMPLETED : WorkState.FAILED;
      if (failure != null) {
        throw failure;
      }
      return true;
    }
  }

  /**
   * Returns a batch with parts that fail, two of them with the same exception, and one that
   * succeeds.
   */
  @SuppressWarnings("NullAway") // needs its group only to abort
  private Work batch() {
    List<Part> parts =
        List.of(
            new Part(first), new Part(second), new Part(first), new Part(second), new Part(null));
    return new BatchWork(parts.stream().map(Part::work).toList(), null, Time.SYSTEM);
  }

  private void waits(Consumer<Work> wait) {
    Work work = batch();
    assertThatThrownBy(() -> wait.accept(work)).isSameAs(first).hasSuppressedException(second);
    assertThat(work.isCompleted()).as("all parts have ended").isTrue();
    assertThatThrownBy(() -> wait.accept(work)).isSameAs(first);
    assertThat(first.getSuppressed()).containsExactly(second);
  }

  @Test
  void awaitThrowsWhenAllPartsHaveEnded() {
    waits(Work::await);
  }

  @Test
  void awaitForATimeThrowsWhenAllPartsHaveEnded() {
    waits(work -> work.await(Duration.ofSeconds(20)));
  }

  @Test
  void synchronizeThrowsWhenAllPartsHaveEnded() {
    waits(Work::synchronize);
  }

  @Test
  void awaitForATimeEndsAtItsDeadline() {
    assertThat(batch().await(Duration.ZERO)).isFalse();
  }
}
