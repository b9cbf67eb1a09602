package dev.tutti.kernels;

import java.util.List;

/**
 * Describes one kernel of the image.
 *
 * @param name the symbol to look up in the loaded module
 * @param parameters what a launch passes, in order
 * @param maxThreads the most threads of a block
 * @param rule how to launch it
 */
public record Kernel(String name, List<Parameter> parameters, int maxThreads, LaunchRule rule) {
  /** Copies the list. */
  public Kernel {
    parameters = List.copyOf(parameters);
  }

  /** Chooses the threads for a call. */
  @FunctionalInterface
  public interface LaunchRule {
    /**
     * Returns the launch for a call; the same on all ranks, except of {@code tutti_exchange}.
     *
     * @param bytes what the call reduces, or the most that it moves between two ranks
     * @param layout the channel, whose lanes bound the grid
     */
    Launch launch(long bytes, ChannelLayout layout);
  }

  /**
   * Returns the launch for a call.
   *
   * @param bytes what the call reduces, or the most that it moves between two ranks
   * @param layout the channel, whose lanes bound the grid
   */
  public Launch launch(long bytes, ChannelLayout layout) {
    return rule.launch(bytes, layout);
  }

  @Override
  public String toString() {
    return name;
  }
}
