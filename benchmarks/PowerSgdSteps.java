import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.PowerSgd;
import dev.tutti.gradients.hook.PowerSgdOptions;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Takes steps of PowerSGD as one rank of a job: {@code PowerSgdSteps FILE STEPS RANK}, where RANK
 * is the rank of the approximation. Rank 0 writes the gradients of each step as big-endian float32.
 * power_sgd_torch.py takes the same steps with PyTorch's hook and compares.
 */
public class PowerSgdSteps {
  private static final int PLAIN_STEPS = 2;

  public static void main(String[] args) throws IOException {
    int steps = Integer.parseInt(args[1]);
    PowerSgdOptions options =
        PowerSgdOptions.DEFAULT
            .withRank(Integer.parseInt(args[2]))
            .withPlainSteps(PLAIN_STEPS)
            .withFirstFactor((parameter, row, column) -> number(900, column, parameter, row));
    List<Tensor> parameters =
        List.of(
            Tensor.allocate(DType.FLOAT32, 60, 40),
            Tensor.allocate(DType.FLOAT32, 50),
            Tensor.allocate(DType.FLOAT32, 30, 5, 7));
    try (ProcessGroup group = ProcessGroup.init();
        GradientReducer reducer =
            new GradientReducer(
                group, parameters, ReducerOptions.DEFAULT.withHook(new PowerSgd(options)));
        DataOutputStream out =
            new DataOutputStream(
                new BufferedOutputStream(
                    Files.newOutputStream(Path.of(group.rank() == 0 ? args[0] : "/dev/null"))))) {
      for (int step = 0; step < steps; step++) {
        for (int p = parameters.size() - 1; p >= 0; p--) {
          float[] values = new float[(int) parameters.get(p).numel()];
          for (int i = 0; i < values.length; i++) {
            values[i] = (float) number(step, group.rank(), p, i);
          }
          reducer.gradient(p).copyFrom(values);
          reducer.ready(p);
        }
        reducer.await();
        for (int p = 0; p < parameters.size(); p++) {
          for (float element : reducer.gradient(p).toFloatArray()) {
            out.writeFloat(element);
          }
        }
      }
    }
  }

  /** Returns a number from -0.5 to 0.5 derived from four others; Python derives the same one. */
  private static double number(long step, long rank, long parameter, long index) {
    long mixed = ((step * 31 + rank) * 31 + parameter) * 65_537 + index;
    mixed = (mixed * 1_103_515_245L + 12_345) & 0x7fffffffL;
    mixed = (mixed * 1_103_515_245L + 12_345) & 0x7fffffffL;
    return (mixed >> 11) / 1_048_576.0 - 0.5;
  }
}
