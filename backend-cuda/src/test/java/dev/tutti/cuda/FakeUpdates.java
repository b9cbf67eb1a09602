package dev.tutti.cuda;

import static dev.tutti.spi.DeviceUpdates.BACKOFF;
import static dev.tutti.spi.DeviceUpdates.CHECKS;
import static dev.tutti.spi.DeviceUpdates.CONTROL_SIZE;
import static dev.tutti.spi.DeviceUpdates.FACTOR;
import static dev.tutti.spi.DeviceUpdates.GOOD_STEPS;
import static dev.tutti.spi.DeviceUpdates.GROWTH;
import static dev.tutti.spi.DeviceUpdates.INTERVAL;
import static dev.tutti.spi.DeviceUpdates.IS_SGD;
import static dev.tutti.spi.DeviceUpdates.MAX_NORM;
import static dev.tutti.spi.DeviceUpdates.NORM;
import static dev.tutti.spi.DeviceUpdates.NUMBERS;
import static dev.tutti.spi.DeviceUpdates.RATE;
import static dev.tutti.spi.DeviceUpdates.SCALE;
import static dev.tutti.spi.DeviceUpdates.SETTINGS;
import static dev.tutti.spi.DeviceUpdates.SKIPS;
import static dev.tutti.spi.DeviceUpdates.SQUARES;
import static dev.tutti.spi.DeviceUpdates.STEPS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.UpdateKernels;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Fakes of the kernels that take steps of optimizers. */
final class FakeUpdates {
  private static final List<DType> TYPES =
      List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16);

  private final FakeCudaDriver fake;

  FakeUpdates(FakeCudaDriver fake) {
    this.fake = fake;
  }

  private static long number(MemorySegment[] arguments, int index) {
    return arguments[index].get(JAVA_LONG, 0);
  }

  private static DType type(MemorySegment[] arguments, int index) {
    return TYPES.get(arguments[index].get(JAVA_INT, 0));
  }

  /** Returns an array of the device, or null at address 0. */
  private @Nullable Tensor find(long address, DType type, long count) {
    if (address == 0) {
      return null;
    }
    long bytes = count * type.byteSize();
    assertThat(address % type.byteSize()).as("alignment of an array").isZero();
    assertThat(count == 0 || fake.memory().isUsable(address, bytes)).as("memory").isTrue();
    return Tensor.wrap(MemorySegment.ofAddress(address).reinterpret(bytes), type, count);
  }

  private Tensor read(long address, DType type, long count) {
    Tensor found = find(address, type, count);
    if (found == null) {
      throw new AssertionError("a kernel reads address 0");
    }
    fake.races().read("an update", address, found.byteSize());
    return found;
  }

  private @Nullable Tensor write(long address, DType type, long count) {
    Tensor found = find(address, type, count);
    if (found != null) {
      fake.races().write("an update", address, found.byteSize());
    }
    return found;
  }

  private Tensor change(long address, DType type, long count) {
    Tensor found = read(address, type, count);
    fake.races().write("an update", address, found.byteSize());
    return found;
  }

  void run(Kernel kernel, MemorySegment[] arguments) {
    if (kernel.equals(UpdateKernels.squares())) {
      squares(arguments);
    } else if (kernel.equals(UpdateKernels.addSquares())) {
      addSquares(arguments);
    } else if (kernel.equals(UpdateKernels.prepare())) {
      prepare(arguments);
    } else {
      update(arguments);
    }
  }

  private void squares(MemorySegment[] a) {
    int blocks = UpdateKernels.launch(UpdateKernels.squares(), number(a, 1)).grid();
    Tensor data = read(number(a, 0), type(a, 2), number(a, 1));
    Tensor sums = write(number(a, 3), DType.FLOAT64, blocks);
    for (int block = 0; sums != null && block < blocks; block++) {
      double sum = 0;
      for (long i = block; i < data.numel(); i += blocks) {
        sum += data.getDouble(i) * data.getDouble(i);
      }
      sums.setDouble(block, sum);
    }
  }

  private void addSquares(MemorySegment[] a) {
    Tensor control = change(number(a, 2), DType.FLOAT64, CONTROL_SIZE);
    double sum = 0;
    for (double each : read(number(a, 0), DType.FLOAT64, number(a, 1)).toDoubleArray()) {
      sum += each;
    }
    control.setDouble(SQUARES, sum);
  }

  private void prepare(MemorySegment[] a) {
    Tensor control = change(number(a, 0), DType.FLOAT64, CONTROL_SIZE);
    double[] c = control.toDoubleArray();
    c[FACTOR] = 1 / c[SCALE];
    c[SKIPS] = 0;
    if (c[CHECKS] != 0) {
      c[SKIPS] = Double.isFinite(c[SQUARES]) ? 0 : 1;
      c[NORM] = Math.sqrt(c[SQUARES]) / c[SCALE];
      if (c[MAX_NORM] > 0 && c[SKIPS] == 0 && c[NORM] + 1e-6 > c[MAX_NORM]) {
        c[FACTOR] *= c[MAX_NORM] / (c[NORM] + 1e-6);
      }
    }
    if (c[INTERVAL] > 0) {
      c[GOOD_STEPS]++;
      if (c[SKIPS] != 0) {
        c[SCALE] *= c[BACKOFF];
        c[GOOD_STEPS] = 0;
      } else if (c[GOOD_STEPS] == c[INTERVAL]) {
        c[SCALE] *= c[SCALE] * c[GROWTH] > Float.MAX_VALUE ? 1 : c[GROWTH];
        c[GOOD_STEPS] = 0;
      }
    }
    if (c[SKIPS] == 0) {
      c[STEPS]++;
      boolean isFirst = c[STEPS] == 1;
      boolean isSgd = c[IS_SGD] != 0;
      c[NUMBERS] = isSgd ? (isFirst ? 0 : c[SETTINGS]) : 1 - c[RATE] * c[SETTINGS + 3];
      c[NUMBERS + 1] =
          isSgd
              ? (isFirst ? 1 : 1 - c[SETTINGS + 1])
              : c[RATE] / (1 - Math.pow(c[SETTINGS], c[STEPS]));
      c[NUMBERS + 2] = isSgd ? c[RATE] : Math.sqrt(1 - Math.pow(c[SETTINGS + 1], c[STEPS]));
    }
    for (int i = 0; i < CONTROL_SIZE; i++) {
      control.setDouble(i, c[i]);
    }
  }

  private void update(MemorySegment[] a) {
    long count = number(a, 5);
    double[] c = read(number(a, 8), DType.FLOAT64, CONTROL_SIZE).toDoubleArray();
    Tensor parameters = change(number(a, 0), DType.FLOAT32, count);
    Tensor copy = write(number(a, 1), type(a, 7), count);
    Tensor gradients = read(number(a, 2), type(a, 6), count);
    Tensor first = write(number(a, 3), DType.FLOAT32, count);
    Tensor second = write(number(a, 4), DType.FLOAT32, count);
    for (long i = 0; i < count; i++) {
      if (c[SKIPS] == 0) {
        double g = gradients.getDouble(i) * c[FACTOR];
        double p = parameters.getDouble(i);
        if (c[IS_SGD] != 0) {
          parameters.setDouble(i, descend(c, p, g, first, i));
        } else if (first != null && second != null) {
          double m = first.getDouble(i) + (g - first.getDouble(i)) * (1 - c[SETTINGS]);
          double v = c[SETTINGS + 1] * second.getDouble(i) + (1 - c[SETTINGS + 1]) * g * g;
          first.setDouble(i, m);
          second.setDouble(i, v);
          double divisor = Math.sqrt(v) / c[NUMBERS + 2] + c[SETTINGS + 2];
          parameters.setDouble(i, p * c[NUMBERS] - c[NUMBERS + 1] * m / divisor);
        } else {
          throw new AssertionError("AdamW without its state");
        }
      }
      if (copy != null) {
        copy.setDouble(i, parameters.getDouble(i));
      }
    }
  }

  private static double descend(
      double[] c, double parameter, double gradient, @Nullable Tensor velocity, long i) {
    double g = gradient + c[SETTINGS + 3] * parameter;
    double v = g;
    if (velocity != null) {
      v = c[NUMBERS] * velocity.getDouble(i) + c[NUMBERS + 1] * g;
      velocity.setDouble(i, v);
    }
    double direction = c[SETTINGS + 2] != 0 ? g + c[SETTINGS] * v : v;
    return parameter - c[NUMBERS + 2] * direction;
  }
}
