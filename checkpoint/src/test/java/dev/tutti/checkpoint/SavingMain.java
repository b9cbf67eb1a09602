package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;

/**
 * A rank that loads the latest checkpoint, and saves one after the other until it is killed.
 * Argument: the folder.
 */
final class SavingMain {
  private SavingMain() {}

  public static void main(String[] args) {
    Tensor weight = Tensor.allocate(DType.FLOAT64, 40, 1000);
    Tensor bias = Tensor.allocate(DType.INT64, 999);
    Contents contents = Contents.of().copies("model", List.of("w", "b"), List.of(weight, bias));
    try (ProcessGroup group = ProcessGroup.init();
        Checkpoints saved = Checkpoints.in(group, Path.of(args[0])).keeping(2)) {
      OptionalLong loaded = saved.loadLatest(contents);
      long step = loaded.orElse(-1);
      if (loaded.isPresent()) {
        for (long i = 0; i < weight.numel(); i++) {
          require(weight.getDouble(i) == (double) step);
        }
        for (long i = 0; i < bias.numel(); i++) {
          require(bias.getLong(i) == step);
        }
      }
      System.out.println("loaded " + step);
      while (true) {
        step++;
        weight.fill((double) step);
        bias.fillLong(step);
        System.out.println("saving " + step);
        saved.save(step, contents).await();
        System.out.println("awaited " + step);
      }
    } catch (CheckpointException e) {
      System.out.println("failed: " + e.getMessage());
      System.exit(1);
    }
  }

  private static void require(boolean isRight) {
    if (!isRight) {
      System.out.println("wrong elements");
      System.exit(2);
    }
  }
}
