package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.ForwardingProcessGroup;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that trouble beside the files themselves is found early, and costs no checkpoint. */
class TroubleTest {
  @TempDir Path folder;

  private static Contents model(Tensor weight) {
    return Contents.of().copies("model", List.of("weight"), List.of(weight));
  }

  private static Tensor filled(double value) {
    return Tensor.allocate(DType.FLOAT32, 3, 5).fill(value);
  }

  private void save(FullDisk disk, long... steps) {
    ThreadedWorld.run(
        2,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder, disk).keeping(1)) {
            for (long step : steps) {
              saved.save(step, model(filled((double) step))).await();
            }
          }
        });
  }

  private List<String> names() throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  private List<Throwable> loadFailures(int ranks, Contents contents) {
    return ThreadedWorld.call(
        ranks,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            return catchThrowable(() -> saved.loadLatest(contents));
          }
        });
  }

  @Test
  void ranksWaitForEachOtherLongerThanCollectivesOfTrainingMay() {
    ThreadedWorld.run(
        2,
        group -> {
          group.setTimeout(Duration.ofMinutes(1));
          try (ProcessGroup own = Checkpoints.ownGroup(group)) {
            assertThat(own.timeout()).isEqualTo(Duration.ofMinutes(30));
          }
          group.setTimeout(Duration.ofHours(2));
          try (ProcessGroup own = Checkpoints.ownGroup(group)) {
            assertThat(own.timeout()).isEqualTo(Duration.ofHours(2));
          }
          assertThat(group.timeout()).isEqualTo(Duration.ofHours(2));
        });
  }

  @Test
  void aTensorThatCannotBeWrittenIsFoundBeforeAnotherChanges() {
    save(new FullDisk(false), 3);
    Tensor first = filled(9);
    Tensor second = Tensor.wrap(filled(9).segment().asReadOnly(), DType.FLOAT32, 3, 5);
    ThreadedWorld.run(
        1,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved
                .save(
                    4, Contents.of().copies("m", List.of("a", "b"), List.of(filled(1), filled(2))))
                .await();
          }
        });
    assertThat(
            loadFailures(1, Contents.of().copies("m", List.of("a", "b"), List.of(first, second))))
        .singleElement()
        .satisfies(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContaining(
                        "has 'b', but the program's tensor is read-only, for section 'm'"));
    assertThat(first.toFloatArray()).containsOnly(9);
  }

  @Test
  void aMissingFileIsFoundBeforeATensorChanges() throws IOException {
    save(new FullDisk(false), 3);
    Path file = folder.resolve("step-3/model-00001-of-00002.safetensors");
    Files.delete(file);
    Tensor weight = filled(9);
    assertThat(loadFailures(2, model(weight)))
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContaining(file + " is damaged: it is missing")
                    .hasMessageNotContaining("changed in part"));
    assertThat(weight.toFloatArray()).containsOnly(9);
  }

  @Test
  void anInterruptOfOneRankFailsAllAtOnceAndSpoilsNothing() {
    save(new FullDisk(false), 3);
    ThreadedWorld.run(
        2,
        group -> {
          Tensor weight = filled(9);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            if (group.rank() == 1) {
              Thread.currentThread().interrupt();
            }
            Throwable failure = catchThrowable(() -> saved.loadLatest(model(weight)));
            assertThat(Thread.interrupted()).isEqualTo(group.rank() == 1);
            assertThat(failure)
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith("loading step 3 failed: rank 1 on host ")
                .hasMessageEndingWith("its thread was interrupted; call again when it is not");
            assertThat(weight.toFloatArray()).containsOnly(9);
            assertThat(saved.loadLatest(model(weight))).hasValue(3);
            assertThat(weight.toFloatArray()).containsOnly(3);
          }
        });
  }

  @Test
  void anInterruptWhileTheFolderIsOpenedFailsAllAndSpoilsNothing() {
    ThreadedWorld.run(
        2,
        group -> {
          if (group.rank() == 0) {
            Thread.currentThread().interrupt();
          }
          Throwable failure = catchThrowable(() -> Checkpoints.in(group, folder));
          assertThat(Thread.interrupted()).isEqualTo(group.rank() == 0);
          assertThat(failure)
              .isInstanceOf(CheckpointException.class)
              .hasMessageStartingWith("opening the checkpoints in " + folder)
              .hasMessageContaining(" failed: rank 0 on host ")
              .hasMessageEndingWith("its thread was interrupted; call again when it is not");
          Checkpoints.in(group, folder).close();
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void ranksThatCallOtherMethodsEndAtOnce(int saver) {
    List<Throwable> failures =
        ThreadedWorld.call(
            2,
            group -> {
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                return catchThrowable(
                    () -> {
                      if (group.rank() == saver) {
                        saved.save(1, model(filled(1))).await();
                      } else {
                        saved.loadLatest(model(filled(1)));
                      }
                    });
              }
            });
    assertThat(failures.get(saver))
        .isInstanceOf(CheckpointException.class)
        .hasMessage(
            "saving step 1 failed: rank %d does not save; call the same methods on all ranks",
            1 - saver);
    assertThat(failures.get(1 - saver))
        .isInstanceOf(CheckpointException.class)
        .hasMessage(
            "loading the latest checkpoint failed: rank %d does not load; call the same methods on"
                + " all ranks",
            saver);
  }

  @Test
  void whatAKilledJobLeftIsSwept() throws IOException {
    Files.writeString(folder.resolve(".seen-0123456789abcdef"), "host");
    Files.createDirectories(folder.resolve(".saving-7-0123456789abcdef/x"));
    save(new FullDisk(false), 1);
    assertThat(names()).containsExactly(".lock", "step-1");
  }

  @Test
  @ResourceLock("the log of saves")
  void aSaveDoesNotFailBecauseOlderOnesCannotBeDeleted() throws IOException {
    Logger log = Logger.getLogger(SaveRun.class.getName());
    List<String> reports = new ArrayList<>();
    log.setFilter(
        record -> {
          reports.add(record.getLevel() + ": " + record.getMessage());
          return false;
        });
    try {
      save(
          new FullDisk(false) {
            @Override
            public void delete(Path path) throws IOException {
              throw new IOException(path + ": not today");
            }
          },
          1,
          2,
          3);
    } finally {
      log.setFilter(null);
    }
    assertThat(reports)
        .hasSize(2)
        .allMatch(report -> report.startsWith(Level.WARNING + ": step {0} is saved, but older"));
    assertThat(names()).containsExactly(".deleting-1", ".deleting-2", ".lock", "step-3");
    save(new FullDisk(false), 4);
    assertThat(names()).containsExactly(".lock", "step-4");
  }

  @Test
  void aCheckpointThatMayBeLostIsNamed() {
    Path path = folder;
    List<Throwable> failures =
        saveFailures(
            1,
            _ ->
                new FullDisk(false) {
                  @Override
                  public void forceFolder(Path forced) throws IOException {
                    if (forced.equals(path)) {
                      throw new IOException(forced + ": Input/output error");
                    }
                    super.forceFolder(forced);
                  }
                });
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContaining(
                        "step-1 is complete, but a crash of the host may lose it"));
  }

  /** An object whose only state is a number. */
  private static final class Balance implements ShardedState {
    private long cents;

    @Override
    public List<StatePart> parts() {
      return List.of();
    }

    @Override
    public Map<String, Long> counters() {
      return Map.of("cents", cents);
    }

    @Override
    public void restored(Map<String, Long> counters) {
      cents = counters.get("cents");
    }
  }

  @Test
  void countersMayBeNegative() {
    ThreadedWorld.run(
        1,
        group -> {
          Balance balance = new Balance();
          balance.cents = Long.MIN_VALUE;
          Contents contents = Contents.of().parts("balance", balance);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, contents).await();
            balance.cents = 5;
            saved.loadLatest(contents);
          }
          assertThat(balance.cents).isEqualTo(Long.MIN_VALUE);
        });
  }

  /** Saves a step on two ranks, each with a disk of its own, and returns how that failed. */
  private List<Throwable> saveFailures(int step, Function<ProcessGroup, FullDisk> diskOf) {
    return ThreadedWorld.call(
        2,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, folder, diskOf.apply(group))) {
            return catchThrowable(() -> saved.save(step, model(filled(step))).await());
          }
        });
  }

  private static void assertFail(List<Throwable> failures, String... parts) {
    assertThat(failures)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(CheckpointException.class)
                    .hasMessageContainingAll(parts));
  }

  private List<Throwable> openFailures(Path opened) {
    return ThreadedWorld.call(
        2, group -> catchThrowable(() -> Checkpoints.in(group, opened).close()));
  }

  @Test
  void aLockThatIsALinkIsNotFollowed() throws IOException {
    Path precious = Files.writeString(folder.resolve("precious"), "text");
    Files.createSymbolicLink(folder.resolve(".lock"), precious);
    assertFail(openFailures(folder), folder.resolve(".lock").toString());
    assertThat(precious).hasContent("text");
  }

  @Test
  void aFolderThatIsAFileIsNamed() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "text");
    for (Path opened : List.of(file, file.resolve("inner"))) {
      assertFail(
          openFailures(opened),
          file + " is a file or a link to none, not a folder; choose another");
    }
  }

  @Test
  void aLinkThatLeadsNowhereIsNamed() throws IOException {
    Path link = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("none"));
    assertFail(
        openFailures(link), link + " is a file or a link to none, not a folder; choose another");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ".lock"})
  void aFolderThatWasRemovedOrReplacedIsOpenedAgain(String removed) throws IOException {
    Path root = folder.resolve("root");
    ThreadedWorld.run(
        2,
        group -> {
          try (Checkpoints saved = Checkpoints.in(group, root)) {
            saved.save(1, model(filled(1))).await();
            if (group.rank() == 0) {
              new NioDisk().delete(root.resolve(removed));
              Files.createDirectories(root);
              Files.createFile(root.resolve(".lock"));
              Files.createDirectory(root.resolve(".saving-7-0123456789abcdef")); // by another job
            }
            assertThatThrownBy(() -> saved.save(2, model(filled(2))).await())
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith("saving step 2 failed: rank 0 on host ")
                .hasMessageEndingWith(
                    root.resolve(".lock")
                        + " was removed or replaced, so another job may use the folder; close these"
                        + " checkpoints, and open a folder");
            assertThat(root.resolve(".saving-7-0123456789abcdef")).isDirectory();
          }
          group.barrier();
          try (Checkpoints again = Checkpoints.in(group, root)) {
            again.save(2, model(filled(2))).await();
          }
        });
    assertThat(root.resolve("step-2")).isDirectory();
  }

  @Test
  void whatIsRemovedInASaveIsNamed() throws IOException {
    save(new FullDisk(false), 1);
    assertFail(
        saveFailures(
            2,
            group ->
                new FullDisk(false) {
                  @Override
                  public Output create(Path file) throws IOException {
                    return super.create(
                        group.rank() == 0 ? file : folder.resolve("removed").resolve("model"));
                  }
                }),
        "saving step 2 failed: rank 1 on host ",
        folder.resolve("removed/model")
            + ": it or its folder is missing; let nobody remove what a job uses");
    assertThat(names()).containsExactly(".lock", "step-1");
  }

  @Test
  void aFileInThePlaceOfACheckpointIsNamed() throws IOException {
    Files.createFile(folder.resolve("step-9"));
    assertFail(
        loadFailures(2, model(filled(1))),
        "loading step 9 failed: ranks 0, 1 on host ",
        folder.resolve("step-9/checkpoint.json")
            + ": Not a directory; mend that, or use another folder");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aFolderWithoutAManifestIsDamaged(boolean isThere) throws IOException {
    save(new FullDisk(false), 3);
    if (isThere) {
      Files.createDirectory(folder.resolve("step-9"));
      assertFail(
          loadFailures(2, model(filled(1))),
          folder.resolve("step-9/checkpoint.json") + " is damaged: it is missing; move ",
          "step-9 away to load an older checkpoint");
    } else {
      assertFail(
          ThreadedWorld.call(
              2,
              group -> {
                try (Checkpoints saved = Checkpoints.in(group, folder)) {
                  return catchThrowable(() -> saved.load(9, model(filled(1))));
                }
              }),
          folder.resolve("step-9/checkpoint.json") + ": there is no such checkpoint");
    }
  }

  @Test
  void aFileOfAnyLengthInThePlaceOfAManifestIsNotReadWhole() throws IOException {
    save(new FullDisk(false), 3);
    Path manifest = folder.resolve("step-3/checkpoint.json");
    try (RandomAccessFile file = new RandomAccessFile(manifest.toFile(), "rw")) {
      file.setLength(Integer.MAX_VALUE - 8);
    }
    assertFail(
        loadFailures(2, model(filled(1))),
        manifest + " is damaged: it does not end with a SHA-256");
  }

  @Test
  void whatTheProgramLacksComesWithAWayToListWhatWasSaved() {
    save(new FullDisk(false), 3);
    assertFail(
        loadFailures(2, Contents.of().copies("model", List.of("other"), List.of(filled(1)))),
        "loading step 3 failed: ranks 0, 1 on host ",
        ": the checkpoint has no tensor 'other' for section 'model'; what was saved is listed by:"
            + " tutti checkpoint show --step 3 "
            + folder);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aFolderThatCannotBeWrittenFailsAllAndTheOlderCheckpointRemains(boolean isReadOnly)
      throws IOException {
    save(new FullDisk(false), 1);
    int rank = 1;
    assertFail(
        saveFailures(
            2,
            group ->
                new FullDisk(false) {
                  @Override
                  public Output create(Path file) throws IOException {
                    if (group.rank() == rank) {
                      throw isReadOnly
                          ? new FileSystemException(file.toString(), null, "Read-only file system")
                          : new AccessDeniedException(file.toString());
                    }
                    return super.create(file);
                  }
                }),
        "saving step 2 failed: rank 1 on host ",
        ": " + folder.resolve(".saving-2-"),
        isReadOnly
            ? "model-00002-of-00002.safetensors: Read-only file system; choose a folder that can be"
                + " written"
            : "model-00002-of-00002.safetensors: permission denied; let this user read and write"
                + " there, or use another folder");
    assertThat(names()).containsExactly(".lock", "step-1");
    Tensor weight = filled(9);
    assertThat(loadFailures(2, model(weight))).containsOnlyNulls();
    assertThat(weight.toFloatArray()).containsOnly(1);
  }

  @Test
  void aTextThatIsNullIsNamed() {
    assertFail(
        ThreadedWorld.call(
            2,
            group -> {
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                Contents contents = Contents.of().value("seed", () -> nothing(), all -> {});
                return catchThrowable(() -> saved.save(1, contents).await());
              }
            }),
        "the value of section 'seed' is null");
  }

  @SuppressWarnings("NullAway") // what a program does that nobody checks
  private static String nothing() {
    return null;
  }

  @Test
  void theNameOfMetadataIsRefused() {
    Contents none = Contents.of();
    assertThatThrownBy(() -> none.copies("m", List.of("__metadata__"), List.of(filled(1))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "a tensor of section 'm' is named '__metadata__', which safetensors files use for"
                + " something else");
  }

  @Test
  void aGroupWithoutABackendForTheHostIsRefused() {
    ThreadedWorld.run(
        1,
        group -> {
          ProcessGroup onDevices =
              new ForwardingProcessGroup() {
                @Override
                protected ProcessGroup delegate() {
                  return group;
                }

                @Override
                public Map<String, String> backends() {
                  return Map.of("cuda", "nccl");
                }
              };
          assertThatThrownBy(() -> Checkpoints.in(onDevices, folder))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage(
                  "the group has no backend for the host, with which ranks agree on a checkpoint;"
                      + " its backends are {cuda=nccl}");
        });
  }
}
