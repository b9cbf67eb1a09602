package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.kernels.ChannelLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A ledger of the multiprocessors of a device on which kernels of this process may wait for other
 * ranks. Any thread may call any method. Allocates nothing in the steady state.
 */
public final class Multiprocessors {
  /*
   * A block may occupy a multiprocessor until its peers' blocks have begun. At most one kernel of a
   * channel and one of a stream can be resident at a time. If each of them finds room for a block
   * while the others are there whole, on all devices, then all go on: the rank of a group that is
   * behind the others has no block there, so it finds room for its next one.
   *
   * Two channels that have the device for themselves always leave such room to each other. If there
   * are more, each one keeps a block, and streams share the rest: what a kernel has beyond its
   * first block is lent to its stream until the kernel has ended. A kernel that gets less is
   * launched in several kernels, one after another, each of which has some of its lanes. So no rank
   * needs to know how another one launches.
   */
  private static final int KEPT = ChannelLayout.LEFT_MULTIPROCESSORS + 1;
  private static final int KEPT_STEP = 16;
  private static final int CALM_LAUNCHES = 256;
  private static final int MOST_STREAMS = 64;

  private final DeviceContext context;
  private final EventPool events;
  private final List<Loan> loans = new ArrayList<>();
  private int channels;
  private int processes = 1;
  private int all;
  private int fairShare = Integer.MAX_VALUE;
  private int calm;

  /** What a stream has. */
  private static final class Loan {
    final long stream;

    /** The most blocks of a kernel that may not have ended; 0 if there is none. */
    int blocks;

    /** After the last kernel; null while there is none, or one is being launched. */
    @Nullable EventMark last;

    @Nullable EventMark lastButOne;

    /** After all kernels with more than {@link #later} blocks; null if that is not known. */
    @Nullable EventMark larger;

    int later;

    boolean isActive;

    Loan(long stream) {
      this.stream = stream;
    }

    void take(int count) {
      if (count < blocks && larger != null) {
        later = Math.max(later, count);
      } else {
        blocks = Math.max(blocks, count);
        forgetLarger();
      }
    }

    private void forgetLarger() {
      if (larger != null) {
        larger.close();
        larger = null;
      }
    }

    /** Takes back what kernels had that have ended. */
    void settle() {
      if (larger != null && larger.isReached()) {
        blocks = later;
        larger = null;
      }
      if (last != null && last.isReached()) {
        clear();
      }
    }

    void clear() {
      forgetLarger();
      last = null;
      blocks = 0;
    }
  }

  Multiprocessors(DeviceContext context, EventPool events) {
    this.context = context;
    this.events = events;
  }

  /** Counts a channel whose kernels wait for other ranks. */
  public synchronized void enter() {
    channels++;
  }

  /** No longer counts a channel, of which no kernel runs. */
  public synchronized void leave() {
    channels--;
  }

  /**
   * Leaves multiprocessors to other processes.
   *
   * @param count the number of processes, with this one, whose ranks use the device
   */
  public synchronized void shareAmong(int count) {
    processes = Math.max(processes, count);
  }

  /**
   * Lends a stream what the next kernel of a channel occupies. The caller then launches it, at once
   * or in several kernels, and calls {@link #launched} or {@link #takeBack}.
   *
   * @param stream the handle of the stream
   * @param blocks the number of blocks that the kernel needs
   * @return the maximum number of blocks of a launch, at least 1
   */
  public synchronized int lend(long stream, int blocks) {
    Loan loan = loan(stream);
    if (loan.last != null) {
      loan.lastButOne = loan.last;
      loan.last = null;
    }
    loan.isActive = true;
    int count = blocks;
    if (channels <= 2 && processes == 1) {
      fairShare = Integer.MAX_VALUE;
    } else {
      count = share(loan, blocks);
    }
    loan.take(count);
    return count;
  }

  private int share(Loan loan, int blocks) {
    int wanted = Math.min(blocks, fairShare);
    if (wanted > room(loan)) {
      loans.forEach(Loan::settle);
    }
    int room = room(loan);
    if (wanted <= room && wanted == blocks && loan.blocks <= fairShare) {
      return blocks;
    }
    context.enter();
    if (context.driver().streams().isCapturing(loan.stream)) {
      return blocks;
    }
    if (wanted > room) {
      fairShare = Math.clamp(1 + shared() / inFlight(loan), 1, fairShare);
      calm = CALM_LAUNCHES;
    } else if (wanted < blocks && --calm == 0) {
      calmDown();
    }
    if (loan.blocks > fairShare && loan.larger == null) {
      loan.larger = new EventMark(context, events, null, 0);
      loan.larger.recordIn(loan.stream);
      loan.later = 0;
    }
    return Math.min(wanted, room);
  }

  /** Ends equal shares, unless several streams are still in use. */
  private void calmDown() {
    int active = 0;
    for (int i = 0; i < loans.size(); i++) {
      Loan each = loans.get(i);
      active += each.isActive ? 1 : 0;
      each.isActive = false;
    }
    calm = CALM_LAUNCHES;
    if (active <= 1) {
      fairShare = Integer.MAX_VALUE;
    }
  }

  /** Returns the number of blocks that streams share. */
  private int shared() {
    if (all == 0) {
      all = context.driver().devices().attribute(context.device(), DeviceAttribute.MULTIPROCESSORS);
    }
    int few = Math.ceilDiv(KEPT, processes);
    int kept = channels <= few ? few : Math.ceilDiv(channels, KEPT_STEP) * KEPT_STEP;
    return Math.max(0, all / processes - kept);
  }

  private int room(Loan of) {
    int room = 1 + shared();
    for (int i = 0; i < loans.size(); i++) {
      Loan each = loans.get(i);
      if (each != of && each.blocks > 1) {
        room -= each.blocks - 1;
      }
    }
    return Math.max(1, room);
  }

  private int inFlight(Loan of) {
    int count = 1;
    for (Loan each : loans) {
      count += each != of && each.blocks > 0 ? 1 : 0;
    }
    return count;
  }

  private Loan loan(long stream) {
    for (int i = 0; i < loans.size(); i++) {
      Loan each = loans.get(i);
      if (each.stream == stream) {
        return each;
      }
    }
    if (loans.size() >= MOST_STREAMS) {
      loans.forEach(Loan::settle);
      loans.removeIf(each -> each.blocks == 0);
    }
    Loan made = new Loan(stream);
    loans.add(made);
    return made;
  }

  /**
   * Notes that a kernel was launched.
   *
   * @param stream the handle of the stream
   * @param end the end of the kernel in its stream
   */
  public synchronized void launched(long stream, EventMark end) {
    Loan loan = loan(stream);
    loan.last = end;
    loan.lastButOne = null;
  }

  /**
   * Takes back what was lent for a kernel that could not be launched, or was captured into a graph:
   * replays are not counted.
   *
   * @param stream the handle of the stream
   */
  public synchronized void takeBack(long stream) {
    Loan loan = loan(stream);
    if (loan.last == null) {
      loan.last = loan.lastButOne;
      if (loan.last == null) {
        loan.clear();
      }
    }
  }
}
