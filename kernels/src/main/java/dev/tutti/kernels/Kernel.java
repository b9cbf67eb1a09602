package dev.tutti.kernels;

import java.util.List;

/**
 * One kernel of the image.
 *
 * @param name the symbol to look up in the loaded module
 * @param parameters the values that a launch passes, in order
 * @param maxThreads the maximum number of threads of a block
 * @param rule how to launch it
 */
public record Kernel(String name, List<Parameter> parameters, int maxThreads, LaunchRule rule) {
  /** A placeholder for the channel that some kernels do not have. */
  private static final ChannelLayout NO_CHANNEL = ChannelLayout.ofRanks(2);

  /** Copies the list. */
  public Kernel {
    parameters = List.copyOf(parameters);
  }

  /** Determines the threads for a call. */
  @FunctionalInterface
  public interface LaunchRule {
    /**
     * Returns the launch for a call; it is the same on all ranks, except for {@code
     * tutti_exchange}.
     *
     * @param bytes the number of bytes that the call reduces, or the maximum that it moves between
     *     two ranks
     * @param layout the channel, whose lanes limit the grid
     */
    Launch launch(long bytes, ChannelLayout layout);
  }

  /**
   * Returns the launch for a call.
   *
   * @param bytes the number of bytes that the call reduces, or the maximum that it moves between
   *     two ranks
   * @param layout the channel, whose lanes limit the grid
   */
  public Launch launch(long bytes, ChannelLayout layout) {
    return rule.launch(bytes, layout);
  }

  /**
   * Returns the launch of a kernel without a channel.
   *
   * @param items the number of items that it works on
   */
  Launch launch(long items) {
    return rule.launch(items, NO_CHANNEL);
  }

  @Override
  public String toString() {
    return name;
  }
}
