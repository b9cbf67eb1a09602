import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Saving;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Saves or loads a model of 64 tensors as one rank of a group. Arguments: save or load, the folder,
 * the step, the size in MiB. Rank 0 prints the longest times of all ranks in microseconds.
 */
public class CheckpointTimes {
  private static final int TENSORS = 64;
  private static final int PLAIN_COPIES = 5;
  private static final int TRAINING_MILLIS = 5000;
  private static final int PAUSE_MILLIS = 1000;

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
      if (args[0].equals("save")) {
        save(group, saved, step, contents, tensors);
      } else {
        long began = System.nanoTime();
        saved.loadLatest(contents).orElseThrow();
        print(group, List.of("load"), began, System.nanoTime());
      }
    }
  }

  /**
   * Loads nothing, pauses as if it trained, and saves twice. Then copies as many bytes as a rank's
   * share to memory that was written before.
   */
  private static void save(
      ProcessGroup group, Checkpoints saved, long step, Contents contents, List<Tensor> tensors)
      throws InterruptedException {
    saved.loadLatest(contents);
    Thread.sleep(TRAINING_MILLIS);
    for (String which : List.of("first", "second")) {
      group.barrier();
      long began = System.nanoTime();
      Saving saving = saved.save(which.equals("first") ? step : step + 1, contents);
      long copied = System.nanoTime();
      saving.await();
      print(group, List.of(which + "_copy", which + "_save"), began, copied, System.nanoTime());
    }
    List<Tensor> share = tensors.subList(0, Math.ceilDiv(TENSORS, group.size()));
    List<Tensor> targets =
        share.stream().map(tensor -> Tensor.allocate(DType.FLOAT32, tensor.numel())).toList();
    long[] times = new long[PLAIN_COPIES];
    for (int i = 0; i < PLAIN_COPIES; i++) {
      // At once, it would find more in the processor's caches than a save does.
      Thread.sleep(PAUSE_MILLIS);
      group.barrier();
      long began = System.nanoTime();
      for (int j = 0; j < share.size(); j++) {
        targets.get(j).copyFrom(share.get(j));
      }
      times[i] = System.nanoTime() - began;
    }
    Arrays.sort(times);
    print(group, List.of("plain_copy"), 0, times[PLAIN_COPIES / 2]);
  }

  private static void print(ProcessGroup group, List<String> names, long began, long... ends) {
    Tensor micros = Tensor.of(Arrays.stream(ends).map(end -> (end - began) / 1000).toArray());
    group.allReduce(micros, ReduceOp.MAX);
    for (int i = 0; i < ends.length && group.rank() == 0; i++) {
      System.out.printf("time %s %d%n", names.get(i), micros.getLong(i));
    }
  }
}
