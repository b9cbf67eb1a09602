package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that tensors on a device are copied while the program continues. */
class SaveBesideTest {
  private static final int RANKS = 2;

  @TempDir Path folder;

  @AfterEach
  void allStreamsAreBack() {
    PlayedDevice.hasStreams = true;
    assertThat(PlayedDevice.TAKEN).hasValue(0);
  }

  private static Tensor onDevice(double value) {
    return PlayedDevice.filled(DType.FLOAT32, value, 3, 5);
  }

  private static Contents contents(Tensor a, Tensor b, Tensor host) {
    return Contents.of().copies("model", List.of("a", "b", "host"), List.of(a, b, host));
  }

  private static void set(Tensor tensor, double value) {
    new PlayedDevice().copyFromHost(tensor, Tensor.allocate(DType.FLOAT32, 3, 5).fill(value));
  }

  @Test
  void theCopyFollowsEarlierWorkAndIsAwaitedBeforeChanges() {
    ThreadedWorld.run(
        RANKS,
        group -> {
          Tensor a = onDevice(1);
          Tensor b = onDevice(2);
          Tensor host = Tensor.allocate(DType.FLOAT32, 3, 5).fill(3);
          PlayedDevice.Stream stream = new PlayedDevice.Stream();
          CompletableFuture<Void> before = new CompletableFuture<>();
          CompletableFuture<Void> after = new CompletableFuture<>();
          PlayedDevice.Stream _ = stream.makeCurrent();
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            stream.add(before);
            Saving saving = saved.saveBeside(1, contents(a, b, host));
            stream.add(after);
            host.fill(9);
            assertThat(saving.isDone()).isFalse();
            // What was in the stream changes the tensors, and then ends.
            set(a, 4);
            set(b, 5);
            before.complete(null);
            saving.awaitCopied();
            set(a, 9);
            set(b, 9);
            saving.await();
            after.complete(null);
            saved.loadLatest(contents(a, b, host));
          }
          assertThat(PlayedDevice.read(a).toFloatArray()).containsOnly(4);
          assertThat(PlayedDevice.read(b).toFloatArray()).containsOnly(5);
          assertThat(host.toFloatArray()).containsOnly(3);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aSaveWithoutSuchStreamsIsCopiedAtOnce(boolean beside) {
    PlayedDevice.hasStreams = false;
    ThreadedWorld.run(
        RANKS,
        group -> {
          Tensor a = onDevice(1);
          Contents model = Contents.of().copies("model", List.of("a"), List.of(a));
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            Saving saving = beside ? saved.saveBeside(1, model) : saved.save(1, model);
            set(a, 9);
            saving.awaitCopied();
            saving.await();
            saved.loadLatest(model);
          }
          assertThat(PlayedDevice.read(a).toFloatArray()).containsOnly(1);
        });
  }

  @Test
  void aCopyThatFailsFailsTheSaveOfAllRanks() {
    ThreadedWorld.run(
        RANKS,
        group -> {
          Tensor a = onDevice(1);
          Tensor b = onDevice(2);
          Tensor host = Tensor.allocate(DType.FLOAT32, 3, 5);
          PlayedDevice.Stream stream = new PlayedDevice.Stream();
          if (group.rank() == 1) {
            stream.add(CompletableFuture.failedFuture(new IllegalStateException("a bad device")));
          }
          PlayedDevice.Stream _ = stream.makeCurrent();
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            Saving saving = saved.saveBeside(1, contents(a, b, host));
            saving.awaitCopied();
            assertThatThrownBy(saving::await)
                .isInstanceOf(CheckpointException.class)
                .hasMessageMatching("saving step 1 failed: rank 1 on host .* a bad device");
            saved
                .saveBeside(2, Contents.of().copies("model", List.of("host"), List.of(host)))
                .await();
          }
        });
  }

  @Test
  void aSaveThatCannotBeginTakesNoStream() {
    ThreadedWorld.run(
        RANKS,
        group -> {
          Contents model = Contents.of().copies("model", List.of("a"), List.of(onDevice(1)));
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            Saving saving = saved.saveBeside(-1, model);
            saving.awaitCopied();
            assertThatThrownBy(saving::await).hasMessageContaining("not -1");
          }
        });
  }

  @Test
  void aSaveWaitsForTheOneBeforeAndNoneFollowsClose() {
    ThreadedWorld.run(
        RANKS,
        group -> {
          Tensor host = Tensor.of(1f, 2f);
          Contents model = Contents.of().copies("model", List.of("host"), List.of(host));
          Checkpoints saved = Checkpoints.in(group, folder);
          try (saved) {
            Saving first = saved.saveBeside(1, model);
            host.fill(3);
            Saving _ = saved.saveBeside(2, model);
            assertThat(first.isDone()).isTrue();
            host.fill(4);
            saved.load(1, model);
            assertThat(host.toFloatArray()).containsExactly(1, 2);
            saved.load(2, model);
            assertThat(host.toFloatArray()).containsExactly(3, 3);
          }
          assertThatThrownBy(() -> saved.saveBeside(3, model))
              .isInstanceOf(IllegalStateException.class)
              .hasMessage("these checkpoints were closed");
        });
  }
}
