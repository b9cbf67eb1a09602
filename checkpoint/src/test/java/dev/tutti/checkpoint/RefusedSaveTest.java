package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.fake.ThreadedWorld;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that no rank saves what one of them cannot, and that all name it. */
class RefusedSaveTest extends SavedModel {
  @Test
  void ranksThatDisagreeSaveNothing() {
    assertAll(
        savingFailures(2, group -> model(filled(1, 2 + group.rank()), filled(1, 1))),
        "saving step 3 failed: rank 1 saves other copies than rank 0: rank 1 saves 'weight' of"
            + " section 'model' as float32[3] where rank 0 saves 'weight' of section 'model' as"
            + " float32[2]; give all ranks the same contents; nothing was written to "
            + folder);
    assertAll(
        savingFailures(
            3,
            group ->
                Contents.of()
                    .copies(
                        "model",
                        List.of("a", "b").subList(0, 1 + (3 - group.rank()) / 2),
                        List.of(filled(1, 1), filled(1, 1))
                            .subList(0, 1 + (3 - group.rank()) / 2))),
        "rank 2 saves no more where rank 0 saves 'b' of section 'model' as float32[1]; give");
    assertAll(
        savingFailures(
            2, group -> Contents.of().value(group.rank() == 0 ? "a" : "b", () -> "", v -> {})),
        "rank 1 saves the values [b], but rank 0 [a]; give all ranks the same contents; nothing was"
            + " written to "
            + folder);
    assertAll(
        savingFailures(2, group -> Contents.of().parts("p", new Run(5L * group.rank(), 1, 2, 3))),
        "no rank holds element 3 of the 10 of tensor 'run' of section 'p'");
    assertAll(
        savingFailures(
            3,
            group ->
                Contents.of()
                    .value(
                        "v",
                        () -> {
                          if (group.rank() == 1) {
                            throw new IllegalStateException("no sampler");
                          }
                          return "";
                        },
                        v -> {})),
        "saving step 3 failed: rank 1 on host ",
        "no sampler");
    assertThat(names(folder)).containsExactly(".lock");
  }

  @Test
  void ranksThatSaveDifferentStepsSaveNothing() {
    List<Throwable> failures =
        call(
            2,
            group -> {
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                return catchThrowable(
                    () -> saved.save(group.rank(), model(filled(1, 1), filled(1, 1))).await());
              }
            });
    assertAll(failures, "rank 1 saves the step 1, but rank 0 0");
  }

  @Test
  void anOlderStepIsRefused() {
    save(2, 3, 1);
    assertAll(
        savingFailures(2, group -> model(filled(1, 1), filled(1, 1))),
        folder.toString(),
        "holds step 3 already");
  }

  @Test
  void aFolderThatRanksDoNotShareIsNamed() {
    List<Throwable> failures =
        call(
            3,
            group ->
                catchThrowable(
                    () -> Checkpoints.in(group, folder.resolve("of-" + group.rank() / 2))));
    assertAll(
        failures,
        "rank 2 on host",
        "of-1 is not the folder that rank 0 on host",
        "choose one that all hosts share");
  }

  @Test
  void aFolderOfAnotherJobIsNamed() {
    ThreadedWorld.run(
        1,
        group -> {
          try (Checkpoints first = Checkpoints.in(group, folder)) {
            assertThatThrownBy(() -> Checkpoints.in(group, folder))
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(
                    "%s is in use by another job (process %d on ",
                    folder, ProcessHandle.current().pid());
            assertAll(
                call(2, other -> catchThrowable(() -> Checkpoints.in(other, folder))),
                "failed: rank 0 on host ",
                folder + " is in use by another job (process ",
                "); end it, or choose another folder");
            assertThat(first.loadLatest(Contents.of())).isEmpty();
          }
          Checkpoints.in(group, folder).close();
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aFullDiskOfOneRankFailsAllAndLeavesTheOlderCheckpoint(int rank) {
    save(2, 1, 0.25);
    List<Throwable> failures =
        call(
            2,
            group -> {
              Disk disk = new FullDisk(group.rank() == rank);
              try (Checkpoints saved = Checkpoints.in(group, folder, disk)) {
                return catchThrowable(
                    () -> saved.save(2, model(filled(8, 3, 5), filled(8, 5))).await());
              }
            });
    assertAll(
        failures,
        "saving step 2 failed: rank " + rank + " on host",
        ".safetensors: No space left on device; free space there, or keep fewer checkpoints");
    assertThat(names(folder)).containsExactly(".lock", "step-1");
    Tensor weight = filled(0, 3, 5);
    assertThat(failures(2, model(weight, filled(0, 5)))).containsOnlyNulls();
    assertThat(weight.toFloatArray()).containsOnly(0.25f);
  }

  @Test
  void aFailureThatNobodyAwaitedIsThrownByTheNextCall() {
    List<Optional<Throwable>> failures =
        call(
            2,
            group -> {
              List<Throwable> thrown = new ArrayList<>();
              Contents contents = model(filled(8, 3, 5), filled(8, 5));
              try (Checkpoints saved =
                  Checkpoints.in(group, folder, new FullDisk(group.rank() == 1))) {
                saved.save(1, contents);
                thrown.add(catchThrowable(() -> saved.save(2, contents).await()));
              }
              return Optional.ofNullable(thrown.getFirst());
            });
    assertThat(failures)
        .allSatisfy(
            failure -> assertThat(failure.orElseThrow()).hasMessageContaining("saving step 1"));
  }

  @Test
  void argumentsThatCannotBeSavedAreRefused() {
    Contents none = Contents.of();
    Tensor one = filled(1, 1);
    assertThatThrownBy(() -> none.copies("m", List.of("a"), List.of()))
        .hasMessage("section 'm' has 1 names for 0 tensors");
    assertThatThrownBy(() -> none.copies("m", List.of("a", "a"), List.of(one, one)))
        .hasMessage("section 'm' has two tensors named 'a'");
    assertThatThrownBy(() -> none.copies("../m", List.of("a"), List.of(one)))
        .hasMessageContaining("must consist of at most 200 letters");
    assertThatThrownBy(() -> none.value("m".repeat(201), () -> "", v -> {}))
        .hasMessageContaining("must consist of at most 200 letters");
    assertThatThrownBy(() -> none.value("v", () -> "", v -> {}).value("v", () -> "", v -> {}))
        .hasMessage("there are two sections named 'v'");
    assertThatThrownBy(
            () -> none.copies("m", List.of("a"), List.of(Tensor.allocate(DType.COMPLEX128, 1))))
        .hasMessageContaining(
            "of a type that safetensors files have, and contiguous if it is on a device, not"
                + " complex128[1]");
    ThreadedWorld.run(1, this::refusals);
  }

  private void refusals(ProcessGroup group) {
    Checkpoints saved = Checkpoints.in(group, folder);
    assertThatThrownBy(() -> saved.keeping(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> saved.save(1, Contents.of()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("these checkpoints were closed");
    saved.close();
    // The first one has left the folder.
    Checkpoints.in(group, folder).close();
  }

  @ParameterizedTest
  @ValueSource(longs = {-1, 1_000_000_000_000_000_000L})
  void aStepThatNoFolderCanHaveFailsOnAllRanks(long step) {
    List<Throwable> failures =
        call(
            2,
            group -> {
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                Contents contents = model(filled(1, 1), filled(1, 1));
                return catchThrowable(
                    () -> saved.save(group.rank() == 0 ? 3 : step, contents).await());
              }
            });
    assertAll(
        failures, "rank 1 on host", "the step must be from 0 to 999999999999999999, not " + step);
  }

  @Test
  void ranksStayTogetherIfOnlyOneOfThemAwaitsAFailure() {
    List<List<String>> failures =
        call(
            2,
            group -> {
              List<String> own = new ArrayList<>();
              Contents good = model(filled(1, 1), filled(1, 1));
              Contents bad = model(filled(1, 1), filled(1, 1 + group.rank()));
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                Saving first = saved.save(1, bad);
                if (group.rank() == 0) {
                  own.add(catchThrowable(first::await).getMessage());
                }
                own.add(catchThrowable(() -> saved.save(2, good).await()).getMessage());
                saved.save(3, good).await();
                assertThat(saved.loadLatest(good)).hasValue(3);
              }
              return own;
            });
    assertThat(failures.get(0)).hasSize(2);
    assertThat(failures.get(1)).hasSize(1);
    assertThat(failures.get(1).getFirst())
        .isEqualTo(failures.get(0).getLast())
        .startsWith("saving step 2 failed: rank 1 on host")
        .contains("saving step 1 failed: rank 1 saves other copies");
  }

  @Test
  void anErrorInACallbackFailsAllRanks() {
    assertAll(
        savingFailures(
            2,
            group ->
                Contents.of()
                    .value(
                        "v",
                        () -> {
                          throw new AssertionError("wrong on rank " + group.rank());
                        },
                        v -> {})),
        "wrong on rank 0",
        "wrong on rank 1");
  }
}
