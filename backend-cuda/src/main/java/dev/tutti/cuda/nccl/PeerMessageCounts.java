package dev.tutti.cuda.nccl;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntToLongFunction;

/**
 * Counts the messages that a rank has with each peer in a group's communicator. A rank that closes
 * tells its counts, by which a peer knows those of its messages that still come. Any thread.
 */
final class PeerMessageCounts {
  private static final String SEPARATOR = " ";

  private final AtomicLongArray sent;
  private final AtomicLongArray received;

  /**
   * What a rank had with another one.
   *
   * @param sent messages to it
   * @param received messages from it
   * @param inPair messages both ways in a communicator of the two
   */
  record Counts(long sent, long received, long inPair) {}

  /**
   * Creates counts of nothing.
   *
   * @param size number of ranks
   */
  PeerMessageCounts(int size) {
    sent = new AtomicLongArray(size);
    received = new AtomicLongArray(size);
  }

  /** Counts a message, and returns its number, from 1. */
  long next(int peer, boolean sends) {
    return (sends ? sent : received).incrementAndGet(peer);
  }

  /**
   * Says all counts, for {@link #parse}.
   *
   * @param inPair returns how many messages there were in the communicator with a peer alone
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

  /** Returns what the rank that said its counts had with a rank. */
  static Counts parse(String text, int rank) {
    String[] numbers = text.split(SEPARATOR, -1)[rank].split(":", -1);
    return new Counts(
        Long.parseLong(numbers[0]), Long.parseLong(numbers[1]), Long.parseLong(numbers[2]));
  }
}
