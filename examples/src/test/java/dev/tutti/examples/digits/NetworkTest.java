package dev.tutti.examples.digits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.examples.digits.Digits.Image;
import java.util.Random;
import org.junit.jupiter.api.Test;

class NetworkTest {
  /** Compares the gradient with the slope of the loss between two points beside each parameter. */
  @Test
  void theGradientIsTheSlopeOfTheLoss() throws Exception {
    Image image = Digits.load().training().get(0);
    Network network = new Network(7);
    float[] gradient = new float[Network.PARAMETERS];
    network.addGradient(image, gradient);
    Random random = new Random(3);
    for (int i = 0; i < 300; i++) {
      int at = i < 50 ? Network.PARAMETERS - 1 - i : random.nextInt(Network.PARAMETERS);
      double slope = (loss(network, at, 1e-2f, image) - loss(network, at, -1e-2f, image)) / 2e-2;
      assertThat((double) gradient[at]).as("parameter %d", at).isCloseTo(slope, within(1e-3));
    }
  }

  @Test
  void gradientsAddUp() throws Exception {
    Image image = Digits.load().training().get(1);
    Network network = new Network(7);
    float[] once = new float[Network.PARAMETERS];
    float[] twice = new float[Network.PARAMETERS];
    network.addGradient(image, once);
    network.addGradient(image, twice);
    network.addGradient(image, twice);
    for (int i = 0; i < once.length; i++) {
      assertThat(twice[i]).as("parameter %d", i).isEqualTo(2 * once[i]);
    }
  }

  private static double loss(Network network, int parameter, float change, Image image) {
    float before = network.parameters[parameter];
    network.parameters[parameter] = before + change;
    double loss = network.addGradient(image, new float[Network.PARAMETERS]);
    network.parameters[parameter] = before;
    return loss;
  }
}
