package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.RankCall;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;

/** A model of two tensors, and what all ranks get that save or load it. */
abstract class SavedModel {
  @TempDir Path folder;

  static Contents model(Tensor weight, Tensor bias) {
    return Contents.of().copies("model", List.of("weight", "bias"), List.of(weight, bias));
  }

  static Tensor filled(double value, long... shape) {
    return Tensor.allocate(DType.FLOAT32, shape).fill(value);
  }

  static <T> List<T> call(int ranks, RankCall<T> body) {
    return ThreadedWorld.call(ranks, body);
  }

  void save(int ranks, long step, double value) {
    ThreadedWorld.run(
        ranks,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(step, model(filled(value, 3, 5), filled(value + 1, 5))).await();
          }
        });
  }

  List<Throwable> failures(int ranks, Contents contents) {
    return call(
        ranks,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            return catchThrowable(() -> saved.loadLatest(contents));
          }
        });
  }

  static List<String> names(Path folder) {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Ten elements, of which each rank holds a run; those of ranks may overlap. */
  static final class Run implements ShardedState {
    final long first;
    final Tensor elements;
    long counter;

    Run(long first, float... elements) {
      this.first = first;
      this.elements = Tensor.of(elements);
    }

    @Override
    public List<StatePart> parts() {
      return List.of(new StatePart("run", new long[] {2, 5}, first, elements));
    }

    @Override
    public Map<String, Long> counters() {
      return Map.of("count", counter);
    }

    @Override
    public void restored(Map<String, Long> counters) {
      counter = counters.get("count");
    }
  }

  /** Calls save on all ranks and returns what each throws. */
  List<Throwable> savingFailures(int ranks, RankCall<Contents> contents) {
    return call(
        ranks,
        group -> {
          Contents own = contents.call(group);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            return catchThrowable(() -> saved.save(3, own).await());
          }
        });
  }

  static void assertAll(List<Throwable> failures, String... texts) {
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContainingAll(texts));
  }
}
