package dev.tutti.checkpoint;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.Sha256;
import dev.tutti.fake.RankCall;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that all ranks save and load together, and that a failure on one fails all. */
class CheckpointsTest {
  @TempDir Path folder;

  private static Contents model(Tensor weight, Tensor bias) {
    return Contents.of().copies("model", List.of("weight", "bias"), List.of(weight, bias));
  }

  private static Tensor filled(double value, long... shape) {
    return Tensor.allocate(DType.FLOAT32, shape).fill(value);
  }

  private static <T> List<T> call(int ranks, RankCall<T> body) {
    return ThreadedWorld.call(ranks, body);
  }

  private void save(int ranks, long step, double value) {
    ThreadedWorld.run(
        ranks,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(step, model(filled(value, 3, 5), filled(value + 1, 5))).await();
          }
        });
  }

  private List<Throwable> failures(int ranks, Contents contents) {
    return call(
        ranks,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            return catchThrowable(() -> saved.loadLatest(contents));
          }
        });
  }

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

  private static List<String> names(Path folder) {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
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

  /** Ten elements, of which each rank holds a run; those of ranks may overlap. */
  private static final class Run implements ShardedState {
    private final long first;
    private final Tensor elements;
    private long counter;

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

  /** Calls save on all ranks and returns what each throws. */
  private List<Throwable> savingFailures(int ranks, RankCall<Contents> contents) {
    return call(
        ranks,
        group -> {
          Contents own = contents.call(group);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            return catchThrowable(() -> saved.save(3, own).await());
          }
        });
  }

  private static void assertAll(List<Throwable> failures, String... texts) {
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContainingAll(texts));
  }

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
  void whatDoesNotFitIsRefusedBeforeATensorChanges() {
    save(2, 1, 1);
    Tensor weight = filled(9, 3, 5);
    assertAll(
        failures(2, model(weight, filled(9, 6))),
        "loading step 1 failed: ranks 0, 1 on host ",
        "the checkpoint has 'bias' as float32[5], not as float32[6], for section 'model'");
    assertAll(
        failures(
            2,
            Contents.of()
                .copies(
                    "model",
                    List.of("weight", "bias", "gain"),
                    List.of(weight, filled(9, 5), filled(9, 5)))),
        "the checkpoint has no tensor 'gain' for section 'model'");
    assertAll(
        failures(2, Contents.of().copies("model", List.of("weight"), List.of(weight))),
        "the checkpoint has tensors that the program lacks, [bias], for section 'model'");
    assertAll(
        failures(2, Contents.of().copies("ema", List.of("weight"), List.of(weight))),
        "the checkpoint has no tensor 'weight' for section 'ema'");
    assertAll(
        failures(2, Contents.of().value("sampler", () -> "", v -> {})),
        "the checkpoint has no values for section 'sampler'");
    assertAll(
        failures(2, Contents.of().parts("optimizer", new Run(0, new float[10]))),
        "the checkpoint has no counters for section 'optimizer'");
    assertThat(weight.toFloatArray()).containsOnly(9);
  }

  @Test
  void eachChangedByteIsFound() throws IOException {
    save(2, 4, 1);
    Path checkpoint = folder.resolve("step-4");
    for (String name : names(checkpoint)) {
      Path file = checkpoint.resolve(name);
      byte[] good = Files.readAllBytes(file);
      byte[] bad = good.clone();
      bad[good.length - 30] ^= 1;
      Files.write(file, bad);
      assertThatThrownBy(() -> StoredCheckpoint.open(folder, 4).verify())
          .hasMessageContaining(name + " is damaged");
      if (name.endsWith(".index.json")) {
        Files.write(file, good);
        continue; // Only Python reads it.
      }
      assertAll(
          failures(2, model(filled(0, 3, 5), filled(0, 5))),
          name + " is damaged",
          "move " + checkpoint + " away to load an older checkpoint");
      Files.write(file, Arrays.copyOf(good, good.length - 1));
      assertAll(failures(2, model(filled(0, 3, 5), filled(0, 5))), name + " is damaged");
      Files.delete(file);
      assertAll(failures(2, model(filled(0, 3, 5), filled(0, 5))), name);
      Files.write(file, good);
    }
    assertThat(failures(2, model(filled(0, 3, 5), filled(0, 5)))).containsOnlyNulls();
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

  @Test
  void aCheckpointUnderAnotherNameIsDamaged() throws IOException {
    save(1, 4, 1);
    Files.move(folder.resolve("step-4"), folder.resolve("step-5"));
    assertAll(
        failures(1, model(filled(0, 3, 5), filled(0, 5))),
        "checkpoint.json is damaged: it is that of step 4");
  }

  @Test
  void aManifestThatContradictsAHeaderIsFound() throws IOException {
    save(1, 4, 1);
    StoredCheckpoint.open(folder, 4).verify();
    Path manifest = folder.resolve("step-4/checkpoint.json");
    String text = Files.readString(manifest).replace("\"float32\"", "\"int32\"");
    String digested = text.substring(0, text.indexOf(",\"sha256\""));
    String digest = Sha256.of(digested.getBytes(UTF_8));
    Files.writeString(manifest, digested + ",\"sha256\":\"" + digest + "\"}\n");
    assertThatThrownBy(() -> StoredCheckpoint.open(folder, 4).verify())
        .isInstanceOf(IOException.class)
        .hasMessage("model-00001-of-00001.safetensors has no tensor for 'bias' of section 'model'");
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
