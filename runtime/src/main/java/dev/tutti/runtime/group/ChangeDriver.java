package dev.tutti.runtime.group;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.membership.ChangeInput;
import dev.tutti.runtime.membership.ChangeOutput;
import dev.tutti.runtime.membership.ChangeOutput.Append;
import dev.tutti.runtime.membership.ChangeOutput.Collect;
import dev.tutti.runtime.membership.ChangeState;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.MembershipEntry;
import dev.tutti.runtime.membership.Ready;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Carries out the outputs of a {@link ChangeState} in the store, on the caller's thread. */
final class ChangeDriver {
  /** How long to wait for members before looking into the log again. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Store store;
  private final Time time;
  private final ChangeState state;
  private final String self;
  private final Deque<ChangeOutput> todo = new ArrayDeque<>();
  private @Nullable Collect collect;

  /** The place of the first entry of which it is not known whether it counts. */
  private long unchecked;

  private boolean isUnanswered;
  private int looks;

  /**
   * Prepares a change.
   *
   * @param store the store of the job
   * @param time the clock of the state
   * @param self the number of this process, or the name of one that requests to join
   */
  ChangeDriver(Store store, Time time, ChangeState state, String self) {
    this.store = store;
    this.time = time;
    this.state = state;
    this.self = self;
    this.unchecked = state.membership().read() + 1;
  }

  /**
   * Takes part in a change until it is over.
   *
   * @return how it ended for this process
   * @throws StoreException if the store does not answer
   */
  ChangeOutput run() {
    if (state.membership().read() > 0 || !hasSkipped()) {
      step(new ChangeInput.Tick());
    }
    while (true) {
      ChangeOutput next = todo.poll();
      switch (next) {
        case null -> look();
        case Append append -> append(append);
        case ChangeOutput.Say(long change) -> {
          store.set(key(change, self), state.ready().encode());
        }
        case Collect wanted -> collect = wanted;
        default -> {
          if (!hasSkipped()) {
            return next;
          }
        }
      }
    }
  }

  /**
   * Checks whether what was read counts; if not, continues where the log begins, and returns true.
   */
  private boolean hasSkipped() {
    LogStart start = LogStart.read(store);
    if (start.first() <= unchecked) {
      unchecked = state.membership().read() + 1;
      return false;
    }
    unchecked = start.first();
    collect = null;
    todo.clear();
    todo.addAll(state.skip(time.nanoTime(), start.members()));
    return true;
  }

  private void step(ChangeInput input) {
    todo.addAll(state.step(time.nanoTime(), input));
  }

  private static String key(long change, Object who) {
    return "change/" + change + "/ready/" + who;
  }

  private void append(Append append) {
    Store.Swap swap;
    try {
      swap = store.compareSet(JobMonitor.key(append.place()), null, append.entry().encode());
    } catch (StoreException e) {
      if (isUnanswered) {
        throw e;
      }
      isUnanswered = true;
      step(new ChangeInput.Unanswered());
      return;
    }
    isUnanswered = false;
    byte[] there = swap.value();
    byte[] value = swap.stored() || there == null ? append.entry().encode() : there;
    step(new ChangeInput.Appended(read(append.place(), value)));
    boolean _ = append.entry() instanceof MembershipEntry.Change && swap.stored() && hasSkipped();
  }

  private static ChangeInput.Read read(long place, byte[] value) {
    return ChangeInput.Read.of(place, value, JobMonitor.lostRank(value));
  }

  /** Waits for whatever comes next: an entry, members, or a limit. */
  private void look() {
    Collect wanted = collect;
    long now = time.nanoTime();
    long limit = state.nextLimit();
    if (wanted != null) {
      if (readNext(0)) {
        return;
      }
      List<String> keys = new ArrayList<>();
      wanted.members().forEach(each -> keys.add(key(wanted.change(), each)));
      wanted.names().forEach(each -> keys.add(key(wanted.change(), each)));
      long left = wanted.limitNanos() - now;
      if (left <= 0 || await(keys, Math.min(left, LOOK_NANOS)) || hasOneLeft(wanted)) {
        collect = null;
        step(collected(wanted.change()));
      }
    } else if (!readNext(Math.clamp(limit - now, 0, WAIT_NANOS)) && hasSkipped()) {
      return;
    }
    if (todo.isEmpty() && limit <= time.nanoTime()) {
      step(new ChangeInput.Tick());
    }
  }

  /** Returns whether a member that is waited for has left; looks at one at a time. */
  private boolean hasOneLeft(Collect wanted) {
    List<Integer> members = wanted.members();
    return !members.isEmpty()
        && store.check(List.of("left/" + members.get(looks++ % members.size())));
  }

  private boolean await(List<String> keys, long nanos) {
    try {
      store.await(keys, Duration.ofNanos(nanos));
      return true;
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }

  /** Reads the next entry of the log if it comes in time. */
  private boolean readNext(long nanos) {
    long place = state.membership().read() + 1;
    String key = JobMonitor.key(place);
    byte[] value;
    try {
      if (nanos == 0 && !store.check(List.of(key))) {
        return false;
      }
      value = store.get(key, Duration.ofNanos(Math.max(nanos, LOOK_NANOS)));
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      return false;
    }
    collect = null;
    step(read(place, value));
    return true;
  }

  private ChangeInput.Collected collected(long change) {
    Map<Integer, Ready> members = new HashMap<>();
    Set<Integer> left = new HashSet<>();
    Set<String> names = new HashSet<>();
    for (int member : state.membership().members()) {
      String key = key(change, member);
      if (store.check(List.of(key))) {
        members.put(member, Ready.decode(store.get(key)));
      } else if (store.check(List.of("left/" + member))) {
        left.add(member);
      }
    }
    for (String name : state.membership().waiting()) {
      if (store.check(List.of(key(change, name)))) {
        names.add(name);
      }
    }
    return new ChangeInput.Collected(change, members, names, left);
  }
}
