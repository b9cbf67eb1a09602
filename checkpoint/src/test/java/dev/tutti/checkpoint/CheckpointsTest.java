package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that all ranks save and load together. */
class CheckpointsTest extends SavedModel {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void tensorsValuesAndTheStepComeBack(int ranks) {
    save(2, 7, 0.5);
    List<Tensor> weights =
        call(
            ranks,
            group -> {
              Tensor weight = filled(0, 3, 5);
              Tensor bias = filled(0, 5);
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                assertThat(saved.loadLatest(model(weight, bias))).hasValue(7);
              }
              assertThat(bias.toFloatArray()).containsOnly(1.5f);
              return weight;
            });
    assertThat(weights).allSatisfy(w -> assertThat(w.toFloatArray()).containsOnly(0.5f));
  }

  @Test
  void anEmptyFolderHasNoCheckpoint() {
    assertThat(
            call(
                2,
                group -> {
                  try (Checkpoints saved = Checkpoints.in(group, folder.resolve("a/b"))) {
                    return saved.loadLatest(model(filled(0, 1), filled(0, 1)));
                  }
                }))
        .containsExactly(OptionalLong.empty(), OptionalLong.empty());
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "COMPLEX128")
  void eachTypeKeepsItsBytes(DType dtype) {
    byte[] bytes = new byte[48 * dtype.byteSize()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (dtype == DType.BOOL ? i % 2 : 31 * i);
    }
    ThreadedWorld.run(
        2,
        group -> {
          Tensor tensor = Tensor.allocate(dtype, 6, 8);
          tensor.segment().copyFrom(MemorySegment.ofArray(bytes));
          Contents contents = Contents.of().copies("all", List.of("a/b c\"\n"), List.of(tensor));
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, contents).await();
            tensor.segment().fill((byte) 0);
            saved.load(1, contents);
          }
          assertThat(tensor.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes);
        });
  }

  @Test
  void tensorsThatAreNotContiguousKeepTheirElements() {
    ThreadedWorld.run(
        2,
        group -> {
          Tensor whole = Tensor.of(1f, 2, 3, 4, 5, 6).view(2, 3);
          Tensor columns = whole.transpose(0, 1);
          Contents contents = Contents.of().copies("m", List.of("t"), List.of(columns));
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(0, contents).await();
            whole.fill(0);
            saved.load(0, contents);
          }
          assertThat(whole.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
          assertThat(columns.toFloatArray()).containsExactly(1, 4, 2, 5, 3, 6);
        });
  }

  @Test
  void trainingMayChangeTensorsWhileTheyAreSaved() {
    ThreadedWorld.run(
        2,
        group -> {
          Tensor weight = filled(1, 1000);
          Contents contents = model(weight, filled(2, 3));
          try (Checkpoints saved = Checkpoints.in(group, folder).keeping(2)) {
            for (int step = 0; step < 5; step++) {
              weight.fill((double) step);
              saved.save(step, contents);
              weight.fill(-1);
              group.barrier();
            }
          }
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.load(3, contents);
            assertThat(weight.toFloatArray()).containsOnly(3);
            assertThat(saved.loadLatest(contents)).hasValue(4);
            assertThat(weight.toFloatArray()).containsOnly(4);
          }
        });
    assertThat(names(folder)).containsExactly(".lock", "step-3", "step-4");
  }

  @Test
  void eachRankGetsTheValuesOfAllThatSaved() {
    ThreadedWorld.run(
        3,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            String own = "é\n" + group.rank();
            saved.save(1, Contents.of().value("sampler", () -> own, all -> {})).await();
          }
        });
    List<List<String>> read =
        call(
            2,
            group -> {
              AtomicReference<List<String>> values = new AtomicReference<>();
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                saved.loadLatest(Contents.of().value("sampler", () -> "", values::set));
              }
              return values.get();
            });
    assertThat(read).containsOnly(List.of("é\n0", "é\n1", "é\n2"));
  }

  @Test
  void partsAreLoadedWhereverTheyWere() {
    ThreadedWorld.run(
        3,
        group -> {
          Run own =
              switch (group.rank()) {
                case 0 -> new Run(0, 0, 1, 2, 3);
                case 1 -> new Run(4, 4, 5, 6);
                default -> new Run(6, 6, 7, 8, 9);
              };
          own.counter = 17;
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, Contents.of().parts("state", own)).await();
          }
        });
    ThreadedWorld.run(
        2,
        group -> {
          Run own = group.rank() == 0 ? new Run(0, new float[9]) : new Run(3, new float[7]);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.loadLatest(Contents.of().parts("state", own));
          }
          assertThat(own.elements.toFloatArray())
              .isEqualTo(
                  group.rank() == 0
                      ? new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8}
                      : new float[] {3, 4, 5, 6, 7, 8, 9});
          assertThat(own.counter).isEqualTo(17);
        });
  }

  @Test
  void whatOthersPutBesideCheckpointsIsNotCountedAndStays() throws IOException {
    save(1, 1, 1);
    Files.createDirectories(folder.resolve("step-1/converted/x"));
    Files.createDirectory(folder.resolve("step-2"));
    Files.createSymbolicLink(folder.resolve("step-3"), folder.resolve("step-1"));
    ThreadedWorld.run(
        1,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder).keeping(1)) {
            saved.save(7, model(filled(1, 1), filled(1, 1))).await();
          }
        });
    assertThat(names(folder)).containsExactly(".lock", "step-2", "step-3", "step-7");
  }
}
