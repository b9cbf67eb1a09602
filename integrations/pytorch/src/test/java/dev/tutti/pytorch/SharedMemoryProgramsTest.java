package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Random programs that resize, replace, move and free what PyTorch and Tutti share. PyTorch may
 * refuse a call; afterwards every view still has its values, and the JVM still runs.
 */
class SharedMemoryProgramsTest {
  private static final int PROGRAMS = Integer.getInteger("tutti.memoryPrograms", 300);
  private static final int CALLS = 24;

  /** Large enough that the system unmaps what is freed, and one size of small memory. */
  private static final int[] SIZES = {64, 1 << 14, 1 << 18};

  /** More than memory of those sizes has, or of what grew before. */
  private static final long LARGER = 1 << 19;

  private record View(Tensor ours, float value) {}

  private final List<org.bytedeco.pytorch.Tensor> tensors = new ArrayList<>();
  private final List<LinearImpl> modules = new ArrayList<>();
  private final List<View> views = new ArrayList<>();
  private int refused;
  private int grown;

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  @Test
  void viewsKeepTheirValues() {
    for (int seed = 0; seed < PROGRAMS; seed++) {
      Random random = new Random(seed * 7919L);
      for (int call = 0; call < CALLS; call++) {
        try {
          call(random);
        } catch (RuntimeException e) {
          assertThat(e)
              .as("seed %d, call %d", seed, call)
              .message()
              .containsAnyOf(
                  "not resizable", "out of bounds for storage", "the tensor ends at byte");
          refused++;
        }
        requireValues(seed, call);
      }
      tensors.clear();
      modules.clear();
      views.clear();
    }
    assertThat(refused).isPositive();
  }

  private void requireValues(int seed, int call) {
    for (View view : views) {
      Tensor ours = view.ours();
      for (long i : new long[] {0, ours.numel() / 2, ours.numel() - 1}) {
        if (ours.getFloat(i) != view.value()) {
          throw new AssertionError(
              "seed %d, call %d: element %d is %s, not %s"
                  .formatted(seed, call, i, ours.getFloat(i), view.value()));
        }
        ours.setFloat(i, view.value());
      }
    }
  }

  private static <T> T any(Random random, List<T> list) {
    return list.get(random.nextInt(list.size()));
  }

  private void call(Random random) {
    int size = SIZES[random.nextInt(SIZES.length)];
    if (tensors.isEmpty()) {
      tensors.add(torch.zeros(size));
    }
    org.bytedeco.pytorch.Tensor tensor = any(random, tensors);
    switch (random.nextInt(14)) {
      case 0 -> tensors.add(torch.zeros(size));
      case 1, 2, 3 -> view(tensor, random.nextInt(1000));
      case 4 -> tensor.resize_(new long[] {size}, new MemoryFormatOptional());
      case 5 -> tensor.detach().resize_(new long[] {size}, new MemoryFormatOptional());
      case 6 -> tensor.set_data(torch.full(new long[] {size}, new Scalar(-1f)));
      case 7 -> tensor.set_(any(random, tensors));
      case 8 -> torch.zeros_out(tensor.detach(), new long[] {LARGER + grown++});
      case 9 -> {
        tensors.remove(tensor);
        tensor.close();
      }
      case 10 -> {
        LinearImpl module = new LinearImpl(size / 64, 64);
        modules.add(module);
        view(module.weight(), random.nextInt(1000));
      }
      case 11 -> {
        if (!modules.isEmpty()) {
          LinearImpl module = any(random, modules);
          module.to(random.nextBoolean() ? torch.ScalarType.Double : torch.ScalarType.Float, false);
        }
      }
      case 12 -> {
        if (!modules.isEmpty()) {
          modules.remove(random.nextInt(modules.size())).close();
        }
      }
      default -> {
        Tensor ours = Tensor.allocate(DType.FLOAT32, size);
        org.bytedeco.pytorch.Tensor torchs = Tensors.toTorch(ours);
        tensors.add(torchs);
        view(torchs, random.nextInt(1000));
        if (random.nextInt(8) == 0) {
          System.gc();
        }
      }
    }
  }

  /** Views a tensor and writes a value, unless an earlier view may have the same memory. */
  private void view(org.bytedeco.pytorch.Tensor tensor, float value) {
    Tensor ours = Tensors.of(tensor);
    boolean isKnown =
        views.stream()
            .anyMatch(each -> each.ours().segment().address() == ours.segment().address());
    if (ours.numel() > 0 && ours.dtype() == DType.FLOAT32 && !isKnown) {
      for (long i : new long[] {0, ours.numel() / 2, ours.numel() - 1}) {
        ours.setFloat(i, value);
      }
      views.add(new View(ours, value));
    }
  }
}
