package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Trains a two-layer network on several ranks and on one, with the same total batch. */
class WholeBatchTest {
  private static final int BATCH = 24;
  private static final int INPUTS = 7;
  private static final int HIDDEN = 9;
  private static final int STEPS = 40;

  /** A network with one output that uses half the squared error as its loss. */
  private static final class Network {
    final List<Tensor> parameters =
        List.of(
            Tensor.allocate(DType.FLOAT32, HIDDEN, INPUTS),
            Tensor.allocate(DType.FLOAT32, HIDDEN),
            Tensor.allocate(DType.FLOAT32, HIDDEN));
    final double[][] inputs = new double[BATCH][INPUTS];
    final double[] targets = new double[BATCH];

    Network(long seed) {
      Random data = new Random(5);
      for (double[] input : inputs) {
        for (int i = 0; i < INPUTS; i++) {
          input[i] = data.nextGaussian();
        }
      }
      for (int i = 0; i < BATCH; i++) {
        targets[i] = Math.sin(inputs[i][0]) + inputs[i][1];
      }
      Random random = new Random(seed);
      for (Tensor parameter : parameters) {
        for (long i = 0; i < parameter.numel(); i++) {
          parameter.setDouble(i, random.nextGaussian() / 3);
        }
      }
    }

    /** Writes the mean of the gradients of some samples, and returns the mean loss per sample. */
    double backward(int from, int to, List<Tensor> gradients) {
      gradients.forEach(gradient -> gradient.fill(0));
      double loss = 0;
      double[] hidden = new double[HIDDEN];
      for (int sample = from; sample < to; sample++) {
        double output = 0;
        for (int h = 0; h < HIDDEN; h++) {
          double sum = parameters.get(1).getDouble(h);
          for (int i = 0; i < INPUTS; i++) {
            sum += parameters.get(0).getDouble((long) h * INPUTS + i) * inputs[sample][i];
          }
          hidden[h] = Math.tanh(sum);
          output += parameters.get(2).getDouble(h) * hidden[h];
        }
        double error = (output - targets[sample]) / (to - from);
        loss += (output - targets[sample]) * (output - targets[sample]) / 2 / (to - from);
        for (int h = 0; h < HIDDEN; h++) {
          add(gradients.get(2), h, error * hidden[h]);
          double inner = error * parameters.get(2).getDouble(h) * (1 - hidden[h] * hidden[h]);
          add(gradients.get(1), h, inner);
          for (int i = 0; i < INPUTS; i++) {
            add(gradients.get(0), (long) h * INPUTS + i, inner * inputs[sample][i]);
          }
        }
      }
      return loss;
    }

    private static void add(Tensor tensor, long index, double value) {
      tensor.setDouble(index, tensor.getDouble(index) + value);
    }

    void descend(List<Tensor> gradients) {
      for (int p = 0; p < parameters.size(); p++) {
        for (long i = 0; i < parameters.get(p).numel(); i++) {
          add(parameters.get(p), i, -0.1 * gradients.get(p).getDouble(i));
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void manyRanksLearnWhatOneLearns(Worlds world) {
    Network alone = new Network(1);
    List<Tensor> gradients = new ArrayList<>();
    alone.parameters.forEach(each -> gradients.add(Tensor.allocate(each.dtype(), each.shape())));
    List<double[]> expected = new ArrayList<>();
    double first = 0;
    double last = 0;
    for (int step = 0; step < STEPS; step++) {
      last = alone.backward(0, BATCH, gradients);
      first = step == 0 ? last : first;
      alone.descend(gradients);
      expected.add(alone.parameters.getFirst().toDoubleArray());
    }
    assertThat(last).isLessThan(first / 2);
    for (int ranks = 1; ranks <= 4; ranks++) {
      world.run(
          ranks,
          group -> {
            Network own = new Network(1 + group.rank());
            int share = BATCH / group.size();
            try (GradientReducer reducer = new GradientReducer(group, own.parameters)) {
              for (int step = 0; step < STEPS; step++) {
                List<Tensor> views =
                    List.of(reducer.gradient(0), reducer.gradient(1), reducer.gradient(2));
                double _ = own.backward(share * group.rank(), share * (group.rank() + 1), views);
                for (int i = 2; i >= 0; i--) {
                  reducer.ready(i);
                }
                reducer.await();
                own.descend(List.of(reducer.gradient(0), reducer.gradient(1), reducer.gradient(2)));
                assertThat(own.parameters.getFirst().toDoubleArray())
                    .as("weights after step %d on %d ranks", step, group.size())
                    .containsExactly(expected.get(step), within(1e-5));
              }
            }
          });
    }
  }
}
