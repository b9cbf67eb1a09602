package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that ranks share the reading of what all of them need, and fail together. */
class SharedReadTest {
  private static final String MODEL = ".safetensors";
  private static final long HEADER = 4096;
  private static final long LARGE = (9L << 20) + 5;

  @TempDir Path folder;

  /** A disk that counts what is read of tensors, and fails from some byte on. */
  private static final class CountingDisk extends FullDisk {
    final AtomicLong bytes = new AtomicLong();
    private final long failsFrom;

    CountingDisk(long failsFrom) {
      super(false);
      this.failsFrom = failsFrom;
    }

    @Override
    public Input open(Path file, boolean cached) throws IOException {
      Input input = super.open(file, cached);
      if (!file.toString().endsWith(MODEL)) {
        return input;
      }
      return new Input() {
        @Override
        public long length() throws IOException {
          return input.length();
        }

        @Override
        public void read(long position, ByteBuffer target) throws IOException {
          if (position >= failsFrom) {
            throw new IOException(file + ": Input/output error");
          }
          bytes.addAndGet(target.remaining());
          input.read(position, target);
        }

        @Override
        public void close() throws IOException {
          input.close();
        }
      };
    }
  }

  private static Contents model(Tensor... tensors) {
    return Contents.of()
        .copies("model", List.of("a", "b", "c").subList(0, tensors.length), List.of(tensors));
  }

  private static Tensor[] tensors() {
    return new Tensor[] {
      Tensor.allocate(DType.UINT8, LARGE),
      Tensor.allocate(DType.INT16, 3),
      Tensor.allocate(DType.UINT8, LARGE)
    };
  }

  private static Tensor[] filled() {
    Tensor[] tensors = tensors();
    for (int i = 0; i < tensors.length; i++) {
      byte[] bytes = new byte[(int) tensors[i].byteSize()];
      new Random(i).nextBytes(bytes);
      tensors[i].segment().copyFrom(MemorySegment.ofArray(bytes));
    }
    return tensors;
  }

  @BeforeEach
  void save() {
    Tensor[] tensors = filled();
    ThreadedWorld.run(
        2,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, model(tensors)).await();
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void eachByteIsReadOnceForAllRanks(int ranks) {
    CountingDisk disk = new CountingDisk(Long.MAX_VALUE);
    Tensor[] expected = filled();
    ThreadedWorld.run(
        ranks,
        group -> {
          Tensor[] loaded = tensors();
          try (Checkpoints saved = Checkpoints.in(group, folder, disk)) {
            assertThat(saved.loadLatest(model(loaded))).hasValue(1);
          }
          for (int i = 0; i < loaded.length; i++) {
            assertThat(loaded[i].segment().mismatch(expected[i].segment())).isEqualTo(-1);
          }
        });
    assertThat(disk.bytes).hasValue(2 * LARGE + 6 + 2 * HEADER);
  }

  @Test
  void allRanksEndIfOneCannotRead() {
    List<Throwable> failures =
        ThreadedWorld.call(
            3,
            group -> {
              long failsFrom = group.rank() == 1 ? 1 : Long.MAX_VALUE;
              try (Checkpoints saved = Checkpoints.in(group, folder, new CountingDisk(failsFrom))) {
                return catchThrowable(() -> saved.loadLatest(model(tensors())));
              }
            });
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageMatching(
                        "(?s)loading step 1, with tensors changed in part, failed: rank 1 on host"
                            + " .*: .*model-0000[12]-of-00002.safetensors: Input/output error"));
  }

  @Test
  void ranksThatLoadOtherTensorsAreNamed() {
    List<Throwable> failures =
        ThreadedWorld.call(
            2,
            group -> {
              Tensor[] tensors = tensors();
              Contents contents = group.rank() == 0 ? model(tensors) : Contents.of();
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                return catchThrowable(() -> saved.loadLatest(contents));
              }
            });
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageMatching(
                        "loading step 1 failed: rank 1 loads the copies \\{\\}, but rank 0"
                            + " \\{model=3 tensors [0-9a-f]{16}\\}"));
  }
}
