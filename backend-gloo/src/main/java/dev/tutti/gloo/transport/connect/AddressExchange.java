package dev.tutti.gloo.transport.connect;

import dev.tutti.spi.Bootstrap;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * The addresses that the ranks of a group published. What Gloo publishes has a number for each
 * rank, so that N ranks read 8·N³ bytes. In large groups, ranks of Tutti also publish their address
 * alone, and read only that if all ranks are theirs: a rank of Tutti expects rank numbers anyway.
 *
 * @param published what the ranks published, in rank order
 * @param identifiers how many identifiers each of these has: the number of ranks, or 0
 */
public record AddressExchange(List<byte[]> published, int identifiers) {
  // The level of the only context: PyTorch creates one for each network device of a rank.
  private static final String CONTEXT = "0";

  /** The topic of addresses without identifiers. */
  private static final String SHORT = "tutti/address";

  /** The number of ranks from which reading identifiers costs more than two further calls. */
  static final int LARGE = 64;

  /**
   * Publishes an address, and waits for those of all ranks.
   *
   * @param bootstrap reaches the ranks
   * @param own what this rank publishes for all others
   * @param sealed returns the bytes to publish
   * @param deadlineNanos the deadline, in terms of the clock of the bootstrap
   * @throws dev.tutti.RendezvousException naming the ranks that published nothing in time
   */
  public static AddressExchange of(
      Bootstrap bootstrap, RankBlob own, Function<RankBlob, byte[]> sealed, long deadlineNanos) {
    String what = "publish a Gloo address";
    int identifiers = own.identifiers().length;
    if (identifiers < LARGE) {
      return new AddressExchange(
          bootstrap.allGather(CONTEXT, sealed.apply(own), what, deadlineNanos), identifiers);
    }
    // In this order: who finds the second value of a rank of Tutti also finds the first.
    RankBlob brief = new RankBlob(own.hostname(), own.address(), new long[0]);
    bootstrap.publish(SHORT, sealed.apply(brief));
    bootstrap.publish(CONTEXT, sealed.apply(own));
    bootstrap.await(CONTEXT, what, deadlineNanos);
    boolean allTutti = bootstrap.isPublished(SHORT);
    int[] all = IntStream.range(0, bootstrap.size()).toArray();
    return new AddressExchange(
        bootstrap.collect(allTutti ? SHORT : CONTEXT, all, what, deadlineNanos),
        allTutti ? 0 : identifiers);
  }
}
