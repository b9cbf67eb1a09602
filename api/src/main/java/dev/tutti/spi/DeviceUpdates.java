package dev.tutti.spi;

import dev.tutti.Incubating;
import dev.tutti.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The steps of an optimizer on a device. What a step depends on is a float64 tensor there, the
 * control, so that no step waits for the host and a captured one can be replayed. One thread at a
 * time may call the methods; work goes to its current stream on the device.
 */
@Incubating
public interface DeviceUpdates {
  /** The number of elements of the control; the constants below are their positions. */
  int CONTROL_SIZE = 21;

  /** The sum of the squares of all gradients, times the square of {@link #SCALE}. */
  int SQUARES = 0;

  /** The learning rate. */
  int RATE = 1;

  /** The number of steps that changed parameters. */
  int STEPS = 2;

  /** The loss scale: gradients are that many times too large. */
  int SCALE = 3;

  /** The number of steps since the loss scale changed, all of which changed parameters. */
  int GOOD_STEPS = 4;

  /** What gradients are multiplied by in this step. */
  int FACTOR = 5;

  /** 1 if this step changes nothing, since a gradient is infinite or NaN; otherwise 0. */
  int SKIPS = 6;

  /** The norm of all gradients, without the loss scale, before they are clipped. */
  int NORM = 7;

  /**
   * Three numbers of this step. AdamW: the share of a parameter that is left, the rate over its
   * bias correction, and the root of the other one. SGD: the shares of velocity and gradient in the
   * new velocity, and the rate.
   */
  int NUMBERS = 8;

  /** The largest norm that is not clipped; 0 clips nothing. */
  int MAX_NORM = 11;

  /** The factor by which the loss scale grows. */
  int GROWTH = 12;

  /** The factor by which the loss scale changes after a step that changes nothing. */
  int BACKOFF = 13;

  /** The number of good steps after which the loss scale grows; 0 if it never changes. */
  int INTERVAL = 14;

  /** 1 if {@link #SQUARES} is computed in each step; otherwise 0. */
  int CHECKS = 15;

  /** 1 for SGD, 0 for AdamW. */
  int IS_SGD = 16;

  /**
   * Four settings. AdamW: both betas, epsilon, weight decay. SGD: momentum, dampening, 1 for
   * Nesterov's variant or else 0, weight decay.
   */
  int SETTINGS = 17;

  /**
   * Returns how many sums {@link #squares} writes.
   *
   * @param numel the number of gradients
   */
  int sums(long numel);

  /**
   * Adds up squares.
   *
   * @param gradients contiguous, of float32, float16 or bfloat16
   * @param sums receives float64 sums of some of them each; the same on each run
   */
  void squares(Tensor gradients, Tensor sums);

  /**
   * Adds up sums into {@link #SQUARES} of a control.
   *
   * @param sums float64 numbers
   * @param control the control
   */
  void addSquares(Tensor sums, Tensor control);

  /**
   * Begins a step: computes what updates read from the control.
   *
   * @param control the control, whose {@link #SQUARES} hold those of all ranks if it checks them
   */
  void prepare(Tensor control);

  /**
   * Updates parameters.
   *
   * @param parameters contiguous float32 parameters, changed in place
   * @param rounded receives them, rounded, if they are a master copy; otherwise null
   * @param gradients contiguous, of float32, float16 or bfloat16
   * @param state float32 state, changed in place: AdamW's two means, or SGD's velocity if it has
   *     momentum
   * @param control the control
   */
  void update(
      Tensor parameters,
      @Nullable Tensor rounded,
      Tensor gradients,
      List<Tensor> state,
      Tensor control);
}
