package dev.tutti.checkpoint;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.format.Sha256;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that no tensor changes if a checkpoint does not fit or is damaged. */
class RefusedLoadTest extends SavedModel {
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
}
