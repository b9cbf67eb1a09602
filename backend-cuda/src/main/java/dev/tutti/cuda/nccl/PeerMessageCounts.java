package dev.tutti.cuda.nccl;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntToLongFunction;

/**
 * The numbers of messages that a rank has with each peer in a group's communicator. A rank that
 * closes reports its counts, from which a peer computes which of its messages will still arrive.
 * Thread-safe.
 */
final class PeerMessageCounts {
  private static final String SEPARATOR = " ";

  private final AtomicLongArray sent;
  private final AtomicLongArray received;

  /**
   * The numbers of messages that a rank had with another one.
   *
   * @param sent the messages to it
   * @param received the messages from it
   * @param inPair the messages in both directions in a communicator of the two
   */
  record Counts(long sent, long received, long inPair) {}

  /**
   * Creates counts that are all zero.
   *
   * @param size the number of ranks
   */
  PeerMessageCounts(int size) {
    sent = new AtomicLongArray(size);
    received = new AtomicLongArray(size);
  }

  /** Counts a message, and returns its number, starting at 1. */
  long next(int peer, boolean sends) {
    return (sends ? sent : received).incrementAndGet(peer);
  }

  /**
   * Writes all counts as text, for {@link #parse}.
   *
   * @param inPair returns the number of messages in the communicator with a peer alone
   */
  String text(IntToLongFunction inPair) {
    StringBuilder text = new StringBuilder();
    for (int peer = 0; peer < sent.length(); peer++) {
      text.append(
          String.format(
              Locale.ROOT,
              "%d:%d:%d ",
              sent.get(peer),
              received.get(peer),
              inPair.applyAsLong(peer)));
    }
    return text.toString().strip();
  }

  /** Returns the counts that the rank that wrote the text had with a given rank. */
  static Counts parse(String text, int rank) {
    String[] numbers = text.split(SEPARATOR, -1)[rank].split(":", -1);
    return new Counts(
        Long.parseLong(numbers[0]), Long.parseLong(numbers[1]), Long.parseLong(numbers[2]));
  }
}
