package dev.tutti.gradients;

import dev.tutti.spi.DeviceStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The streams in which the gradients of a bucket were written, usually one. Any thread may call any
 * method.
 */
final class MarkedStreams {
  private final @Nullable Lane lane;
  private final List<DeviceStream> others = new ArrayList<>();
  private volatile @Nullable DeviceStream first;

  /**
   * Creates an empty set.
   *
   * @param lane the reducer's stream, or null if it reduces in the caller's stream
   */
  MarkedStreams(@Nullable Lane lane) {
    this.lane = lane;
  }

  /** Adds the calling thread's current stream. */
  void addCurrent() {
    if (lane != null) {
      DeviceStream current = lane.current();
      if (!current.equals(first)) {
        add(current);
      }
    }
  }

  private synchronized void add(DeviceStream stream) {
    if (first == null) {
      first = stream;
    } else if (!stream.equals(first) && !others.contains(stream)) {
      others.add(stream);
    }
  }

  /**
   * Orders later work in the calling thread's current stream after that in these streams, which it
   * replaces.
   */
  synchronized void gather() {
    DeviceStream known = first;
    if (lane != null && known != null) {
      DeviceStream current = lane.current();
      current.waitFor(known);
      others.forEach(current::waitFor);
      first = current;
      others.clear();
    }
  }

  /**
   * Orders the reducer's stream after these streams, and makes it current on the calling thread.
   *
   * @return the stream before, for {@link #leave}
   */
  @Nullable DeviceStream enter() {
    if (lane != null) {
      drain(lane);
    }
    return use();
  }

  /**
   * Makes the reducer's stream current on the calling thread.
   *
   * @return the stream before, for {@link #leave}
   */
  @Nullable DeviceStream use() {
    return lane == null ? null : lane.makeCurrent();
  }

  /** Makes the stream before current again. */
  static void leave(@Nullable DeviceStream before) {
    if (before != null) {
      DeviceStream _ = before.makeCurrent();
    }
  }

  private synchronized void drain(Lane to) {
    DeviceStream known = first;
    if (known != null) {
      to.after(known);
      for (int i = 0; i < others.size(); i++) {
        to.after(others.get(i));
      }
      first = null;
      others.clear();
    }
  }
}
