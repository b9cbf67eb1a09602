package dev.tutti.examples.digits;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.examples.digits.Digits.Image;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.function.Consumer;

/**
 * A program that trains a classifier for handwritten digits on any number of ranks (example 03).
 *
 * <p>Every rank has the whole network and a share of each batch. The ranks sum their gradients, so
 * each takes the step that a single process would take with the whole batch, and all keep bitwise
 * identical parameters.
 */
public final class TrainDigits {
  private static final int EPOCHS = 30;
  private static final int BATCH = 32;
  private static final float RATE = 0.2f;
  private static final long SEED = 42;

  private TrainDigits() {}

  /**
   * The result of the training on one rank.
   *
   * @param loss the mean cross-entropy of the last epoch, in nats
   * @param accuracy the share of the test images that are classified correctly
   * @param parameters the parameters of the network
   */
  record Outcome(double loss, double accuracy, Tensor parameters) {}

  /**
   * Trains as one rank of a job.
   *
   * @param args none
   * @throws IOException if the images cannot be read
   */
  public static void main(String[] args) throws IOException {
    try (ProcessGroup group = ProcessGroup.init()) {
      train(group, System.out::println);
    }
  }

  /** Trains as one rank of a group; rank 0 reports. */
  static Outcome train(ProcessGroup group, Consumer<String> report) throws IOException {
    Digits digits = Digits.load();
    Network network = new Network(SEED + group.rank());
    shareParameters(group, network);

    List<Image> images = new ArrayList<>(digits.training());
    Random shuffling = new Random(SEED);
    float[] gradient = new float[Network.PARAMETERS + 1];
    double meanLoss = 0;
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
      // The same seed gives all ranks the same order.
      Collections.shuffle(images, shuffling);
      double loss = 0;
      for (int start = 0; start < images.size(); start += BATCH) {
        List<Image> batch = images.subList(start, Math.min(start + BATCH, images.size()));
        addUp(group, network, batch, gradient);
        network.step(gradient, RATE / batch.size());
        loss += gradient[Network.PARAMETERS];
      }
      meanLoss = loss / images.size();
      if (group.rank() == 0) {
        report.accept(String.format(Locale.ROOT, "epoch %2d: loss %.4f", epoch, meanLoss));
      }
    }

    double accuracy = accuracy(group, network, digits.test());
    if (group.rank() == 0) {
      report.accept(
          String.format(
              Locale.ROOT, "test accuracy %.2f %%, ranks: %d", 100 * accuracy, group.size()));
    }
    return new Outcome(meanLoss, accuracy, Tensor.of(network.parameters));
  }

  /** Gives all ranks the parameters of rank 0. */
  private static void shareParameters(ProcessGroup group, Network network) {
    group.broadcast(Tensor.wrap(network.parameters), 0);
  }

  /**
   * Computes the gradient of a batch on all ranks together: each rank sums over its images, then
   * all ranks sum their results. The loss travels with the gradient, behind the last parameter.
   */
  private static void addUp(
      ProcessGroup group, Network network, List<Image> batch, float[] gradient) {
    Arrays.fill(gradient, 0);
    double loss = 0;
    for (int i = group.rank(); i < batch.size(); i += group.size()) {
      loss += network.addGradient(batch.get(i), gradient);
    }
    gradient[Network.PARAMETERS] = (float) loss;
    group.allReduce(Tensor.wrap(gradient));
  }

  /** Classifies the images on all ranks together, each rank a share. */
  private static double accuracy(ProcessGroup group, Network network, List<Image> images) {
    long right = 0;
    for (int i = group.rank(); i < images.size(); i += group.size()) {
      Image image = images.get(i);
      if (network.classify(image) == image.digit()) {
        right++;
      }
    }
    Tensor count = Tensor.of(right);
    group.allReduce(count);
    return (double) count.getLong(0) / images.size();
  }
}
