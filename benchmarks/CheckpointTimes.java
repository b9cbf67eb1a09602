import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Saving;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Saves or loads a model of 64 tensors as one rank of a group. Arguments: save or load, the folder,
 * the step, the size in MiB. Rank 0 prints the times in milliseconds.
 */
public class CheckpointTimes {
  private static final int TENSORS = 64;
  private static final int TRAINING_MILLIS = 5000;

  public static void main(String[] args) throws InterruptedException {
    long floats = Long.parseLong(args[3]) * (1 << 20) / 4 / TENSORS;
    List<String> names = new ArrayList<>();
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < TENSORS; i++) {
      names.add("layer" + i);
      tensors.add(Tensor.allocate(DType.FLOAT32, floats).fill(i));
    }
    Contents contents = Contents.of().copies("model", names, tensors);
    long step = Long.parseLong(args[2]);
    try (ProcessGroup group = ProcessGroup.init();
        Checkpoints saved = Checkpoints.in(group, Path.of(args[1])).keeping(1)) {
      group.barrier();
      String times =
          args[0].equals("save") ? save(group, saved, step, contents) : load(saved, contents);
      if (group.rank() == 0) {
        System.out.println(times);
      }
    }
  }

  /** Loads nothing, pauses as if it trained, and saves twice. */
  private static String save(ProcessGroup group, Checkpoints saved, long step, Contents contents)
      throws InterruptedException {
    saved.loadLatest(contents);
    Thread.sleep(TRAINING_MILLIS);
    group.barrier();
    long began = System.nanoTime();
    Saving saving = saved.save(step, contents);
    long copied = System.nanoTime();
    saving.await();
    long written = System.nanoTime();
    Saving second = saved.save(step + 1, contents);
    long copiedAgain = System.nanoTime();
    second.await();
    long writtenAgain = System.nanoTime();
    return "{\"copy_ms\": %d, \"save_ms\": %d, \"second_copy_ms\": %d, \"second_save_ms\": %d}"
        .formatted(
            (copied - began) / 1_000_000,
            (written - began) / 1_000_000,
            (copiedAgain - written) / 1_000_000,
            (writtenAgain - written) / 1_000_000);
  }

  private static String load(Checkpoints saved, Contents contents) {
    long began = System.nanoTime();
    saved.loadLatest(contents).orElseThrow();
    return "{\"load_ms\": %d}".formatted((System.nanoTime() - began) / 1_000_000);
  }
}
