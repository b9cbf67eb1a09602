package dev.tutti.pytorch.digits;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.examples.digits.Digits;
import dev.tutti.examples.digits.Digits.Image;
import dev.tutti.pytorch.DataParallel;
import dev.tutti.pytorch.Tensors;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/**
 * Trains a two-layer network to read handwritten digits, with PyTorch's Java bindings on any number
 * of ranks.
 */
public final class TrainDigits {
  private static final int EPOCHS = 15;
  private static final int BATCH = 32;
  private static final int SEED = 42;

  private TrainDigits() {}

  private static final class Network extends Module {
    private final LinearImpl hidden = register_module("hidden", new LinearImpl(Digits.PIXELS, 32));
    private final LinearImpl output = register_module("output", new LinearImpl(32, Digits.CLASSES));

    Tensor forward(Tensor pixels) {
      return output.forward(torch.relu(hidden.forward(pixels)));
    }
  }

  /** The images of a part of a batch, in memory that PyTorch reads in place. */
  private record Part(Tensor pixels, Tensor digits) {
    static Part of(List<Image> batch, int rank, int size) {
      List<Image> images = new ArrayList<>();
      for (int i = rank; i < batch.size(); i += size) {
        images.add(batch.get(i));
      }
      float[] pixels = new float[images.size() * Digits.PIXELS];
      long[] digits = new long[images.size()];
      for (int i = 0; i < digits.length; i++) {
        System.arraycopy(images.get(i).pixels(), 0, pixels, i * Digits.PIXELS, Digits.PIXELS);
        digits[i] = images.get(i).digit();
      }
      return new Part(
          Tensors.toTorch(dev.tutti.Tensor.of(pixels)).view(digits.length, Digits.PIXELS),
          Tensors.toTorch(dev.tutti.Tensor.of(digits)));
    }
  }

  /**
   * Trains as one rank of a job.
   *
   * @param args the epoch after which this rank kills itself, or none
   */
  public static void main(String[] args) throws Exception {
    int lastEpoch = args.length > 0 ? Integer.parseInt(args[0]) : -1;
    // Unpacks and loads libtorch before any deadline starts.
    Loader.load(torch.class);
    try (ProcessGroup group = ProcessGroup.init()) {
      torch.manual_seed(SEED + group.rank());
      train(group, lastEpoch);
    }
  }

  private static void train(ProcessGroup group, int lastEpoch) throws Exception {
    Digits digits = Digits.load();
    List<Image> images = new ArrayList<>(digits.training());
    Random shuffling = new Random(SEED);
    Network network = new Network();
    try (DataParallel parallel = new DataParallel(network, group)) {
      SGD optimizer = new SGD(network.parameters(), new SGDOptions(0.2));
      for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        Collections.shuffle(images, shuffling);
        double loss = 0;
        int batches = images.size() / BATCH;
        for (int batch = 0; batch < batches; batch++) {
          List<Image> whole = images.subList(batch * BATCH, (batch + 1) * BATCH);
          Part part = Part.of(whole, group.rank(), group.size());
          optimizer.zero_grad(false);
          Tensor partLoss = torch.cross_entropy(network.forward(part.pixels()), part.digits());
          partLoss.backward();
          parallel.await();
          optimizer.step();
          loss += partLoss.item_float();
        }
        report(group, epoch, loss / batches, right(group, network, digits.test()));
        if (epoch == lastEpoch) {
          Runtime.getRuntime().halt(137);
        }
      }
    }
  }

  /** Returns how many of this rank's test images the network reads correctly. */
  private static double right(ProcessGroup group, Network network, List<Image> images) {
    try (NoGradGuard _ = new NoGradGuard()) {
      Part part = Part.of(images, group.rank(), group.size());
      Tensor guesses = network.forward(part.pixels()).argmax(new LongOptional(1), false);
      return (double) guesses.eq(part.digits()).sum().item_long() / images.size();
    }
  }

  /**
   * Prints on rank 0 the mean loss of all ranks, and the sum of their shares of correct guesses.
   */
  private static void report(ProcessGroup group, int epoch, double loss, double right) {
    dev.tutti.Tensor sums = dev.tutti.Tensor.of(loss / group.size(), right);
    group.allReduce(sums, ReduceOp.SUM);
    if (group.rank() == 0) {
      System.out.printf(
          Locale.ROOT,
          "epoch %2d: loss %.6f, test accuracy %.2f %%%n",
          epoch,
          sums.getDouble(0),
          100 * sums.getDouble(1));
    }
  }
}
