import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.StepStatistics;
import dev.tutti.gradients.hook.StripedAllReduce;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Times steps of data-parallel training as one rank of a job: {@code Gradients TRANSPORT MODEL
 * STEPS}. The transport is only printed; the model is resnet50 or transformer. The backward pass is
 * simulated by spinning for 100 ms in all. Gradients become ready one by one, last parameter first,
 * after times in proportion to their sizes, and each is written into place. Rank 0 prints a line of
 * JSON. With {@code shapes} as the transport, the program only prints the sizes of the parameters.
 * The property {@code stripes} sets the number of parts into which buckets are cut.
 */
public class Gradients {
  private static final long SPIN_NANOS = 100_000_000;
  private static final int WARM_UPS = 10;

  private final ProcessGroup group;
  private final List<Tensor> parameters = new ArrayList<>();
  private final List<Tensor> computed = new ArrayList<>();
  private final long total;

  private Gradients(ProcessGroup group, List<long[]> shapes) {
    this.group = group;
    for (long[] shape : shapes) {
      parameters.add(Tensor.allocate(DType.FLOAT32, shape));
      Tensor ones = Tensor.allocate(DType.FLOAT32, shape);
      float[] elements = new float[(int) ones.numel()];
      Arrays.fill(elements, 1 + group.rank());
      ones.copyFrom(elements);
      computed.add(ones);
    }
    total = parameters.stream().mapToLong(Tensor::numel).sum();
  }

  public static void main(String[] args) {
    List<long[]> shapes = args[1].equals("resnet50") ? resnet50() : transformer();
    if (args[0].equals("shapes")) {
      shapes.forEach(shape -> System.out.println(Arrays.toString(shape).replaceAll("[^0-9 ]", "")));
      return;
    }
    try (ProcessGroup group = ProcessGroup.init()) {
      new Gradients(group, shapes).run(args[0], args[1], Integer.parseInt(args[2]));
    }
  }

  private interface Step {
    void run();
  }

  private void run(String transport, String model, int count) {
    List<Tensor> own =
        parameters.stream().map(each -> Tensor.allocate(DType.FLOAT32, each.shape())).toList();
    long[] alone = time(count, () -> backward(own, null));
    int stripes = Integer.getInteger("stripes", 1);
    try (StripedAllReduce hook = StripedAllReduce.over(group, stripes);
        GradientReducer reducer =
            new GradientReducer(group, parameters, ReducerOptions.DEFAULT.withHook(hook))) {
      Step step =
          () -> {
            backward(null, reducer);
            reducer.await();
          };
      step.run();
      long[] together = time(count, step);
      check(reducer);
      if (group.rank() == 0) {
        StepStatistics mean = reducer.meanStatistics();
        System.out.printf(
            Locale.ROOT,
            "{\"model\": \"%s\", \"ranks\": %d, \"transport\": \"%s\", \"parameters\": %d,"
                + " \"tensors\": %d, \"buckets\": %d, \"stripes\": %d, \"alone_ms\": %.2f, \"step_ms\": %.2f,"
                + " \"step_p90_ms\": %.2f, \"beyond_ms\": %.2f, \"communication_ms\": %.2f,"
                + " \"exposed_ms\": %.2f}%n",
            model,
            group.size(),
            transport,
            total,
            parameters.size(),
            mean.buckets(),
            stripes,
            alone[count / 2] / 1e6,
            together[count / 2] / 1e6,
            together[count * 9 / 10] / 1e6,
            (together[count / 2] - SPIN_NANOS) / 1e6,
            mean.communication().toNanos() / 1e6,
            mean.exposed().toNanos() / 1e6);
      }
      group.barrier();
    }
  }

  private long[] time(int count, Step step) {
    long[] nanos = new long[count];
    for (int i = -WARM_UPS; i < count; i++) {
      group.barrier();
      long start = System.nanoTime();
      step.run();
      if (i >= 0) {
        nanos[i] = System.nanoTime() - start;
      }
    }
    Arrays.sort(nanos);
    return nanos;
  }

  /** Spins for each gradient and writes it, to memory of its own or of the reducer. */
  private void backward(List<Tensor> own, GradientReducer reducer) {
    long due = System.nanoTime();
    for (int i = parameters.size() - 1; i >= 0; i--) {
      due = System.nanoTime() + SPIN_NANOS * parameters.get(i).numel() / total;
      while (System.nanoTime() - due < 0) {
        Thread.onSpinWait();
      }
      Tensor target = reducer == null ? own.get(i) : reducer.gradient(i);
      MemorySegment.copy(
          computed.get(i).segment(), 0, target.segment(), 0, target.segment().byteSize());
      if (reducer != null) {
        reducer.ready(i);
      }
    }
  }

  private void check(GradientReducer reducer) {
    float mean = (group.size() + 1) / 2f;
    for (int i = 0; i < parameters.size(); i++) {
      for (float element : reducer.gradient(i).toFloatArray()) {
        if (element != mean) {
          throw new AssertionError("gradient " + i + " has " + element + ", not " + mean);
        }
      }
    }
  }

  /** The parameters of ResNet-50 in the order of torchvision. */
  private static List<long[]> resnet50() {
    List<long[]> shapes = new ArrayList<>();
    convolution(shapes, 64, 3, 7);
    int in = 64;
    int[] blocks = {3, 4, 6, 3};
    for (int layer = 0; layer < 4; layer++) {
      int planes = 64 << layer;
      for (int block = 0; block < blocks[layer]; block++) {
        convolution(shapes, planes, in, 1);
        convolution(shapes, planes, planes, 3);
        convolution(shapes, 4 * planes, planes, 1);
        if (block == 0) {
          convolution(shapes, 4 * planes, in, 1);
        }
        in = 4 * planes;
      }
    }
    shapes.add(new long[] {1000, in});
    shapes.add(new long[] {1000});
    return shapes;
  }

  /** A convolution without bias, and the scale and shift of its normalization. */
  private static void convolution(List<long[]> shapes, int out, int in, int kernel) {
    shapes.add(new long[] {out, in, kernel, kernel});
    shapes.add(new long[] {out});
    shapes.add(new long[] {out});
  }

  /** The parameters of BERT-base, 110 M. */
  private static List<long[]> transformer() {
    List<long[]> shapes = new ArrayList<>(List.of(new long[] {30522, 768}, new long[] {512, 768}));
    for (int layer = 0; layer < 12; layer++) {
      for (int i = 0; i < 4; i++) {
        shapes.add(new long[] {768, 768});
        shapes.add(new long[] {768});
      }
      shapes.add(new long[] {3072, 768});
      shapes.add(new long[] {3072});
      shapes.add(new long[] {768, 3072});
      for (int i = 0; i < 5; i++) {
        shapes.add(new long[] {768});
      }
    }
    shapes.addAll(
        List.of(new long[] {768}, new long[] {768}, new long[] {768, 768}, new long[] {768}));
    return shapes;
  }
}
