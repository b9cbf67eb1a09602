package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that files of others are read, and that a file that is none is named. */
class SafetensorsFileTest {
  @TempDir Path folder;

  private Path write(String json, int... data) throws IOException {
    byte[] header = json.replace('\'', '"').getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes =
        ByteBuffer.allocate(8 + header.length + data.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(header.length).put(header);
    for (int each : data) {
      bytes.put((byte) each);
    }
    return Files.write(folder.resolve("model.safetensors"), bytes.array());
  }

  @Test
  void tensorsAreRead() throws IOException {
    Path file =
        write(
            "{'__metadata__':{'format':'pt'},"
                + "'b':{'dtype':'U8','shape':[3],'data_offsets':[4,7]},"
                + "'a':{'dtype':'I16','shape':[2,1],'data_offsets':[0,4]},"
                + "'u':{'dtype':'U16','shape':[],'data_offsets':[7,9]}}   ",
            1,
            0,
            0xff,
            0xff,
            7,
            8,
            9,
            0,
            0);
    try (SafetensorsFile model = SafetensorsFile.open(file)) {
      assertThat(model.names()).containsExactly("a", "b", "u");
      assertThat(model.dtype("a")).isEqualTo(DType.INT16);
      assertThat(model.shape("a")).containsExactly(2, 1);
      assertThat(model.read("a").toLongArray()).containsExactly(1, -1);
      byte[] heap = new byte[3];
      model.read("b", Tensor.wrap(MemorySegment.ofArray(heap), DType.UINT8, 3));
      assertThat(heap).containsExactly(7, 8, 9);
      assertThatThrownBy(() -> model.read("u"))
          .hasMessage(
              "tensor 'u' of " + file + " has elements of type U16, which no tensor can hold");
      assertThatThrownBy(() -> model.read("c"))
          .hasMessage(file + " has no tensor 'c'; it has [a, b, u]");
      assertThatThrownBy(() -> model.read("a", Tensor.allocate(DType.INT16, 2)))
          .hasMessageContaining("tensor 'a' of " + file + " is int16[2, 1], not int16[2]");
    }
  }

  @Test
  void aFileThatIsNoneIsNamed() throws IOException {
    Path file = write("{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]}}", 1);
    assertThatThrownBy(() -> SafetensorsFile.open(file))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith(file + " is not a safetensors file: the data end at byte ");
    Files.write(file, new byte[3]);
    assertThatThrownBy(() -> SafetensorsFile.open(file))
        .hasMessage(file + " is not a safetensors file: it has 3 bytes");
    Files.write(file, new byte[] {1, 1, 1, 1, 1, 1, 1, 1, 1});
    assertThatThrownBy(() -> SafetensorsFile.open(file)).hasMessageContaining("a header of 72340");
  }

  @Test
  void theFilesOfACheckpointAreRead() throws IOException {
    ThreadedWorld.run(
        1,
        group -> {
          Tensor weight = Tensor.of(1f, 2, 3);
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, Contents.of().copies("model", List.of("w"), List.of(weight))).await();
          }
        });
    Path file = folder.resolve("step-1/model-00001-of-00001.safetensors");
    try (SafetensorsFile model = SafetensorsFile.open(file)) {
      assertThat(model.read("w").toFloatArray()).containsExactly(1, 2, 3);
    }
  }
}
