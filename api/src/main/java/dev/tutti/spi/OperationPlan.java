package dev.tutti.spi;

import dev.tutti.Incubating;
import java.util.List;

/**
 * The steps that a backend takes for an operation, from which its time can be estimated.
 *
 * @param path the path that the operation reports
 * @param steps the steps, one after another; none if there is nothing to exchange
 */
@Incubating
public record OperationPlan(String path, List<Step> steps) {
  /** Creates a plan. */
  public OperationPlan {
    steps = List.copyOf(steps);
  }

  /** What a step uses. */
  public enum Link {
    /** Memory that the ranks of a host share. */
    MEMORY,
    /** Messages over sockets. */
    NETWORK,
    /** Memory of devices that their links connect. */
    DEVICE
  }

  /**
   * Rounds that are alike, of which each begins when the one before has ended.
   *
   * <p>In a network, a rank sends {@code messages} of {@code bytes} in a round, the first of which
   * has to arrive before the next round. In shared memory it copies {@code messages} times {@code
   * bytes}, and all ranks of the host wait for each other. Between devices, a rank writes {@code
   * messages} times {@code bytes} into the memory of its peers, and the next round begins when what
   * they wrote has arrived.
   *
   * @param link what is used
   * @param distance how far the numbers of sender and receiver are apart; 0 but in a network
   * @param flows how many ranks of a host send to other hosts at the same time
   * @param rounds the number of rounds
   * @param messages the messages of the busiest rank in a round
   * @param bytes the bytes of a message
   * @param reduced the bytes that a rank combines with others in a round
   */
  @Incubating
  public record Step(
      Link link,
      int distance,
      int flows,
      double rounds,
      double messages,
      double bytes,
      double reduced) {
    /** Returns rounds of messages between ranks that are all on different hosts. */
    public static Step network(int distance, double rounds, double messages, double bytes) {
      return new Step(Link.NETWORK, distance, 1, rounds, messages, bytes, 0);
    }

    /** Returns rounds in memory, in all of which a rank copies the given number of bytes. */
    public static Step memory(double rounds, double bytes) {
      return new Step(Link.MEMORY, 0, 0, rounds, 1, rounds == 0 ? 0 : bytes / rounds, 0);
    }

    /** Returns rounds between devices, in all of which each sends the given number of bytes. */
    public static Step device(double rounds, double bytes) {
      return new Step(Link.DEVICE, 0, 0, rounds, 1, bytes / rounds, 0);
    }

    /** Returns the same rounds, in each of which a rank also combines bytes. */
    public Step reducing(double bytesOfRound) {
      return new Step(link, distance, flows, rounds, messages, bytes, bytesOfRound);
    }

    /**
     * Returns the same rounds between other ranks.
     *
     * @param stride how far neighbors are apart
     * @param sending how many ranks of a host send to other hosts at the same time
     */
    public Step among(int stride, int sending) {
      return new Step(link, distance * stride, sending, rounds, messages, bytes, reduced);
    }
  }
}
