package dev.tutti.fake.simulation;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Queue;

/** The bytes from one end of a connection to the other, in their order. */
final class SimulatedFlow {
  /*
   * One ring stands for the buffers of both systems: up to "head" the receiver has read, up to
   * "arrived" it may read, up to "tail" bytes are on their way. The sender has room as soon as it
   * is notified that the receiver has read.
   */
  private static final int[] WINDOWS = {600, 5_000, 65_536, 262_144};

  /** Up to what length an empty buffer always takes all bytes at once. */
  private static final int WHOLE = 64;

  private static final int SELDOM = 8;

  /** For how long a system sends again what nobody acknowledges. */
  private static final long GIVES_UP_NANOS = 924_000_000_000L;

  private final NetworkTime network;
  private final SimulatedLink link;
  private final ConnectionEnd from;
  private final ConnectionEnd to;
  private final byte[] ring;
  private final Queue<Event> events = new ArrayDeque<>();
  private long head;
  private long arrived;
  private long tail;
  private long acknowledged;
  private long lastAt;
  private boolean stalls;
  private int stallCount;

  /**
   * What happens at the receiver.
   *
   * @param loses whether a reset may overtake it
   */
  private record Event(boolean loses, Runnable action) {}

  SimulatedFlow(NetworkTime network, SimulatedLink link, ConnectionEnd from, ConnectionEnd to) {
    this.network = network;
    this.link = link;
    this.from = from;
    this.to = to;
    this.ring = new byte[WINDOWS[network.choose(WINDOWS.length)]];
  }

  private int room() {
    return (int) (ring.length - (tail - acknowledged));
  }

  /** Returns whether the system says that the sender can write: a third of the room is free. */
  boolean hasRoom() {
    return room() >= ring.length / 3;
  }

  int available() {
    return (int) (arrived - head);
  }

  /** Takes bytes, as many as there is room for or, seldom, fewer. */
  int write(ByteBuffer source) {
    int count = some(Math.min(room(), source.remaining()), WHOLE);
    int at = (int) (tail % ring.length);
    int first = Math.min(count, ring.length - at);
    source.get(ring, at, first).get(ring, 0, count - first);
    tail += count;
    int left = count;
    while (left > 0) {
      int part = some(left, 1);
      left -= part;
      transmit(part, true, () -> arrive(part));
    }
    return count;
  }

  private void arrive(int count) {
    if (to.isOpen()) {
      arrived += count;
    } else {
      to.refuse();
    }
  }

  /** Gives bytes that have arrived, all that fit or, seldom, fewer. */
  int read(ByteBuffer target) {
    int count = some(Math.min(available(), target.remaining()), 1);
    int at = (int) (head % ring.length);
    int first = Math.min(count, ring.length - at);
    target.put(ring, at, first).put(ring, 0, count - first);
    head += count;
    long read = head;
    network.after(
        network.delayNanos(),
        () -> {
          acknowledged = Math.max(acknowledged, read);
          from.changed();
        });
    return count;
  }

  private int some(int most, int whole) {
    return most > whole && network.choose(SELDOM) == 0 ? 1 + network.choose(most) : most;
  }

  /** Ends the flow after all that was sent before. */
  void finish(Runnable action) {
    transmit(0, true, action);
  }

  /** Sends what has no bytes, and is not lost. */
  void signal(Runnable action) {
    transmit(0, false, action);
  }

  /** Resets the connection; may overtake what has not arrived. */
  void reset(Runnable action) {
    if (network.choose(2) == 0) {
      events.removeIf(Event::loses);
    }
    transmit(0, false, action);
  }

  /**
   * Sends something after all that was sent before.
   *
   * @param bytes its length
   * @param loses whether a reset may overtake it
   * @param action what happens at the receiver
   */
  private void transmit(int bytes, boolean loses, Runnable action) {
    long now = network.nowNanos();
    lastAt = Math.max(lastAt, now + network.delayNanos()) + link.nanosOf(bytes);
    events.add(new Event(loses, action));
    if (!stalls) {
      network.after(lastAt - now, this::arrive);
    }
  }

  private void arrive() {
    if (stalls) {
      return;
    }
    if (link.isCut()) {
      stall();
      return;
    }
    Event event = events.poll();
    if (event != null) {
      event.action.run();
      to.changed();
    }
  }

  private void stall() {
    stalls = true;
    int stall = ++stallCount;
    link.whenMended(this::sendAgain);
    network.after(
        GIVES_UP_NANOS,
        () -> {
          if (stalls && stall == stallCount) {
            from.breaks("Connection timed out");
          }
        });
  }

  /** Sends again what did not arrive. */
  private void sendAgain(long nanos) {
    stalls = false;
    lastAt = network.nowNanos() + nanos;
    for (int i = events.size(); i > 0; i--) {
      network.after(nanos, this::arrive);
    }
  }
}
