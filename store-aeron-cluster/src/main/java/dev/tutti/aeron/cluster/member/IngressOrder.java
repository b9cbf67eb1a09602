package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.driver.Channels;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The order of the packets from clients to a member of a cluster; used by the driver's thread. */
final class IngressOrder {
  /*
   * Aeron writes a packet to its place in a term if no frame begins there, so also into a frame that
   * it has received before. That would change messages that IngressCheck has let pass. So only the
   * packet that continues its stream passes. Any other was received before, or came too early; the
   * latter counts as lost, and Aeron requests it again.
   *
   * A stream begins where its first status message says, which Aeron sends before a client may send
   * anything. A later status message is not ahead of the packets that have passed, unless the stream
   * begins anew. Aeron ignores packets that end more than half a term after the last status message,
   * so they do not pass here either.
   */
  private static final int SHIFT = Integer.numberOfTrailingZeros(Channels.TERM_BYTES);
  private static final int WINDOW = Channels.TERM_BYTES / 2;

  private final Map<Integer, Place> places;

  /**
   * Creates an order.
   *
   * @param streams the number of streams to keep in mind: those that have had a status message last
   */
  IngressOrder(int streams) {
    places =
        new LinkedHashMap<>(16, 0.75f, true) {
          private static final long serialVersionUID = 1L;

          @Override
          protected boolean removeEldestEntry(Map.Entry<Integer, Place> eldest) {
            return size() > streams;
          }
        };
  }

  /** Where a stream continues, and the last status message. */
  private static final class Place {
    long next;
    long confirmed;
  }

  private static long position(int term, int offset) {
    return ((long) term << SHIFT) + offset;
  }

  /** Returns how far one position is from another; numbers of terms overflow. */
  private static long distance(long from, long to) {
    return ((to - from) << (32 - SHIFT)) >> (32 - SHIFT);
  }

  /** Notes a status message, which says up to where a stream has been read. */
  void confirmed(int session, int term, int offset) {
    long position = position(term, offset);
    @Nullable Place known = places.get(session);
    Place place = known == null ? new Place() : known;
    if (known == null || distance(place.next, position) > 0) {
      place.next = position;
      places.put(session, place);
    }
    place.confirmed = position;
  }

  /** Returns whether a packet with the given number of bytes is the next one of its stream. */
  boolean isNext(int session, int term, int offset, int bytes) {
    @Nullable Place place = places.get(session);
    return place != null
        && distance(place.next, position(term, offset)) == 0
        && distance(place.confirmed, place.next + bytes) <= WINDOW;
  }

  /** Notes that a packet has passed. */
  void passed(int session, int bytes) {
    @Nullable Place place = places.get(session);
    if (place != null) {
      place.next += bytes;
    }
  }
}
