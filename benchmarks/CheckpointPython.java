import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.SafetensorsFile;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Saves a checkpoint that Python reads, or reads files that Python wrote. Arguments: save or read,
 * and the folder. The name of a tensor says its type, its shape and a number, from which all of its
 * bytes follow: {@code float32/3x5/7}.
 */
public class CheckpointPython {
  private static final int RANKS = 3;
  private static final List<String> SHAPES = List.of("", "1", "0x3", "3x5", "2x1x4", "70001");

  public static void main(String[] args) throws IOException {
    Path folder = Path.of(args[1]);
    if (args[0].equals("save")) {
      save(folder);
    } else {
      read(folder);
    }
  }

  private static byte[] bytes(String name) {
    String[] fields = name.split("/");
    DType dtype = DType.ofLabel(fields[0]);
    long numel = 1;
    for (long size : shape(name)) {
      numel *= size;
    }
    byte[] bytes = new byte[(int) numel * dtype.byteSize()];
    int number = Integer.parseInt(fields[2]);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (dtype == DType.BOOL ? (i + number) % 2 : 31 * i + 7 * number);
    }
    return bytes;
  }

  private static long[] shape(String name) {
    String shape = name.split("/")[1];
    return shape.isEmpty()
        ? new long[0]
        : Arrays.stream(shape.split("x")).mapToLong(Long::parseLong).toArray();
  }

  private static Tensor tensor(String name) {
    Tensor tensor = Tensor.allocate(DType.ofLabel(name.split("/")[0]), shape(name));
    tensor.segment().copyFrom(MemorySegment.ofArray(bytes(name)));
    return tensor;
  }

  private static void save(Path folder) {
    List<String> names = new ArrayList<>();
    List<String> newer = new ArrayList<>(); // types that safetensors 0.8 has
    for (DType dtype : DType.values()) {
      for (String shape : SHAPES) {
        if (dtype != DType.COMPLEX128) {
          List<String> section = dtype.label().endsWith("fnuz") ? newer : names;
          section.add("%s/%s/%d".formatted(dtype.label(), shape, section.size()));
        }
      }
    }
    ThreadedWorld.run(
        RANKS,
        group -> {
          Contents contents =
              Contents.of()
                  .copies("model", names, names.stream().map(CheckpointPython::tensor).toList())
                  .copies("newer", newer, newer.stream().map(CheckpointPython::tensor).toList())
                  .parts("state", new Divided(group.rank()))
                  .value("seed", () -> "seed of " + group.rank(), all -> {});
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, contents).await();
          }
        });
    System.out.println(
        "Java saved " + (names.size() + newer.size()) + " tensors on " + RANKS + " ranks");
  }

  /** Tensors of 100 elements, of which each rank holds 40, some of them with the next rank. */
  private record Divided(int rank) implements ShardedState {
    @Override
    public List<StatePart> parts() {
      List<StatePart> parts = new ArrayList<>();
      for (DType dtype : List.of(DType.FLOAT32, DType.BFLOAT16, DType.INT64)) {
        Tensor whole = tensor(dtype.label() + "/10x10/9").view(100);
        parts.add(
            new StatePart(
                dtype.label() + "/10x10/9",
                new long[] {10, 10},
                30 * rank,
                whole.narrow(0, 30 * rank, 40)));
      }
      return parts;
    }

    @Override
    public Map<String, Long> counters() {
      return Map.of("step", 1L);
    }

    @Override
    public void restored(Map<String, Long> counters) {}
  }

  private static void read(Path folder) throws IOException {
    int tensors = 0;
    int refused = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.safetensors")) {
      for (Path path : files) {
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
          for (String name : file.names()) {
            if (name.startsWith("uint") && !name.startsWith("uint8/")) {
              requireRefused(file, name);
              refused++;
              continue;
            }
            Tensor tensor = file.read(name);
            if (!tensor.dtype().label().equals(name.split("/")[0])
                || !Arrays.equals(tensor.shape(), shape(name))
                || !Arrays.equals(tensor.segment().toArray(ValueLayout.JAVA_BYTE), bytes(name))) {
              throw new IllegalStateException(path + ": " + name + " is " + tensor.describe());
            }
            tensors++;
          }
        }
      }
    }
    if (tensors == 0) {
      throw new IllegalStateException("Python wrote no tensors");
    }
    System.out.printf(
        "Java read %d tensors that Python wrote, and refused %d of types that it lacks%n",
        tensors, refused);
  }

  private static void requireRefused(SafetensorsFile file, String name) throws IOException {
    try {
      file.read(name);
    } catch (IllegalArgumentException expected) {
      return;
    }
    throw new IllegalStateException(name + " was read");
  }
}
