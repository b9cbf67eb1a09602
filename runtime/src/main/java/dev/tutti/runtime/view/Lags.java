package dev.tutti.runtime.view;

import dev.tutti.OpType;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/** Which ranks come last, and how long the others wait for them. */
public final class Lags {
  /*
   * The time that a rank spent in a collective is known by the rank's own clock. The rank that
   * spent the shortest time came last, and each of the others waited for it for the time that it
   * spent in excess of that, so no clock is compared with another. A rank that never had to wait
   * was not timed, and counts as 0; it came when the first of the others ended. In a collective
   * that has not ended, the ranks that have come have waited until their records were taken. For
   * the timeline, clocks are aligned by the ends of collectives that end on all ranks at once.
   */
  private static final Set<OpType> END_TOGETHER =
      EnumSet.of(
          OpType.BARRIER,
          OpType.ALL_REDUCE,
          OpType.ALL_GATHER,
          OpType.ALL_GATHER_INTO,
          OpType.REDUCE_SCATTER,
          OpType.REDUCE_SCATTER_INTO,
          OpType.ALL_TO_ALL,
          OpType.ALL_TO_ALL_SINGLE);

  private final JobRecords records;
  private final SortedMap<Integer, Lag> ranks = new TreeMap<>();
  private final List<HeldUp> heldUp = new ArrayList<>();
  private final SortedMap<Integer, List<Long>> ends = new TreeMap<>();
  private final SortedMap<Integer, Long> offsets = new TreeMap<>();

  /** When operations that never waited began, by one clock. */
  private final Map<RankOperation, Long> began = new HashMap<>();

  private long originNanos;
  private final Map<RankOperation, Long> moving = new HashMap<>();

  /** Where the time of a rank went, and how it kept the others waiting. */
  public static final class Lag {
    /** The number of collectives that have ended on all ranks. */
    int collectives;

    /** The time from the rank's first call to its last end. */
    long spanNanos;

    /** The time in collectives after all ranks had come. */
    long movingNanos;

    private long waitingNanos;
    private final List<Long> lags = new ArrayList<>();
    private final SortedMap<String, Integer> lastIn = new TreeMap<>();

    /** Returns the time in collectives, waiting for others. */
    public long waitingNanos() {
      return waitingNanos;
    }

    /** Returns how often the rank was the last to come. */
    public int times() {
      return lags.size();
    }

    /** Returns how late it was in the median of these cases. */
    public long medianNanos() {
      return median(lags);
    }

    /** Returns how long the others waited for it. */
    public long totalNanos() {
      return totalNanos(0);
    }

    /** Returns how long the others waited for it when it came late by at least a time. */
    long totalNanos(long leastNanos) {
      return lags.stream().filter(nanos -> nanos >= leastNanos).mapToLong(Long::longValue).sum();
    }

    /** Returns how often it came late by at least a time. */
    long times(long leastNanos) {
      return lags.stream().filter(nanos -> nanos >= leastNanos).count();
    }

    /** Returns how often it came last, by operation. */
    public SortedMap<String, Integer> lastIn() {
      return lastIn;
    }
  }

  /**
   * A collective to which a rank came late because its JVM was paused.
   *
   * @param call the call of that rank
   * @param lagNanos how late the rank was
   * @param pausedNanos for how much of that time the JVM was paused
   * @param what the causes of the pauses
   */
  public record HeldUp(RankOperation call, long lagNanos, long pausedNanos, String what) {
    String describe() {
      return String.format(
          Locale.ROOT,
          "group %s: rank %d was %.1f ms late for %s; its JVM was paused for %.1f ms of that: %s",
          call.group(),
          call.rank(),
          lagNanos / 1e6,
          call.describe(),
          pausedNanos / 1e6,
          what);
    }
  }

  private Lags(JobRecords records) {
    this.records = records;
  }

  /** Measures what the records say. */
  public static Lags of(JobRecords records) {
    Lags lags = new Lags(records);
    List<SortedMap<Integer, RankOperation>> collectives = records.collectives();
    collectives.forEach(lags::compareClocks);
    lags.ends.forEach((rank, differences) -> lags.offsets.put(rank, median(differences)));
    collectives.forEach(lags::place);
    records.operations().values().forEach(lags::placeRest);
    records.operations().forEach(lags::measureSpan);
    collectives.forEach(lags::measure);
    lags.originNanos =
        records.operations().values().stream()
            .flatMap(List::stream)
            .mapToLong(lags::began)
            .min()
            .orElse(0);
    return lags;
  }

  /** Returns the lag of each rank that left a record. */
  public SortedMap<Integer, Lag> ranks() {
    return ranks;
  }

  /** Returns the lag of a rank. */
  public Lag of(int rank) {
    return ranks.getOrDefault(rank, new Lag());
  }

  /** Returns the collectives to which a rank came late because its JVM was paused. */
  public List<HeldUp> heldUp() {
    return heldUp;
  }

  /** Returns how long an operation took after all ranks had come to it, as far as is known. */
  long moving(RankOperation call) {
    return moving.getOrDefault(call, call.isMessage() ? call.nanos() : 0);
  }

  /** Returns when an operation began by one clock, in microseconds since the first one. */
  public double micros(RankOperation call) {
    return (began(call) - originNanos) / 1e3;
  }

  /** Returns when a pause began, in the same terms. */
  public double micros(Pause pause) {
    return (pause.startNanos() + offset(pause.rank()) - originNanos) / 1e3;
  }

  private long began(RankOperation call) {
    return began.getOrDefault(call, call.startNanos() + offset(call.rank()));
  }

  /** Returns what to add to a rank's clock. */
  public long offset(int rank) {
    return offsets.getOrDefault(rank, 0L);
  }

  private void measureSpan(int rank, List<RankOperation> calls) {
    long from = Long.MAX_VALUE;
    long to = Long.MIN_VALUE;
    for (RankOperation call : calls) {
      from = Math.min(from, began(call));
      to = Math.max(to, began(call) + records.nanos(call));
    }
    Lag lag = new Lag();
    lag.spanNanos = Math.max(0, to - from);
    ranks.put(rank, lag);
  }

  private void measure(SortedMap<Integer, RankOperation> calls) {
    String group = calls.firstEntry().getValue().group();
    boolean isWhole = calls.size() == records.groups().getOrDefault(group, List.of()).size();
    if (isWhole && calls.size() > 1 && calls.values().stream().allMatch(RankOperation::isTimed)) {
      measureWhole(calls);
    } else if (!calls.values().stream().allMatch(RankOperation::isCompleted)) {
      long least = isWhole ? calls.values().stream().mapToLong(records::nanos).min().orElse(0) : 0;
      calls.values().forEach(call -> addTimes(call, least));
    }
  }

  /** Adds the time in a collective, and returns how much of it was spent waiting. */
  private long addTimes(RankOperation call, long movingNanos) {
    Lag lag = of(call.rank());
    long waited = records.nanos(call) - movingNanos;
    lag.waitingNanos += waited;
    lag.movingNanos += movingNanos;
    moving.put(call, movingNanos);
    return waited;
  }

  private void measureWhole(SortedMap<Integer, RankOperation> calls) {
    RankOperation last = calls.firstEntry().getValue();
    for (RankOperation call : calls.values()) {
      last = call.nanos() < last.nanos() ? call : last;
    }
    List<Long> waits = new ArrayList<>();
    for (RankOperation call : calls.values()) {
      long waited = addTimes(call, last.nanos());
      of(call.rank()).collectives++;
      if (call.rank() != last.rank()) {
        waits.add(waited);
      }
    }
    long late = median(waits);
    if (late > 0) {
      Lag lag = of(last.rank());
      lag.lags.add(late);
      lag.lastIn.merge(last.type().label(), 1, Integer::sum);
      findPauses(last, late);
    }
  }

  /**
   * Finds the pauses that account for most of the time by which a rank was late, by its own clock.
   */
  private void findPauses(RankOperation last, long lagNanos) {
    long came = began(last) - offset(last.rank());
    long paused = 0;
    SortedSet<String> what = new TreeSet<>();
    for (Pause pause : records.pauses()) {
      if (pause.rank() == last.rank()) {
        long part = pause.within(came - lagNanos, came);
        if (part > 0) {
          paused += part;
          what.add(pause.what());
        }
      }
    }
    if (paused > 0 && 2 * paused >= lagNanos) {
      heldUp.add(new HeldUp(last, lagNanos, paused, String.join(", ", what)));
    }
  }

  /** Notes by how much the clocks differ at the end of a collective that ends on all ranks. */
  private void compareClocks(SortedMap<Integer, RankOperation> calls) {
    RankOperation first = calls.firstEntry().getValue();
    boolean isReference =
        first.rank() == records.operations().firstKey()
            && first.endNanos() != 0
            && END_TOGETHER.contains(first.type());
    for (RankOperation call : calls.values()) {
      if (isReference && call.endNanos() != 0) {
        ends.computeIfAbsent(call.rank(), _ -> new ArrayList<>())
            .add(first.endNanos() - call.endNanos());
      }
    }
  }

  /** Notes that ranks that never waited came when the first of the others ended. */
  private void place(SortedMap<Integer, RankOperation> calls) {
    calls.values().stream()
        .filter(call -> call.endNanos() != 0)
        .mapToLong(call -> call.endNanos() + offset(call.rank()))
        .min()
        .ifPresent(
            end ->
                calls.values().stream()
                    .filter(RankOperation::hasNotWaited)
                    .forEach(call -> began.put(call, end)));
  }

  /** Places those that no other rank has ended beside the operation before, or else after them. */
  private void placeRest(List<RankOperation> calls) {
    for (List<RankOperation> order : List.of(calls, calls.reversed())) {
      RankOperation beside = null;
      for (RankOperation call : order) {
        if (!call.hasNotWaited() || began.containsKey(call)) {
          beside = call;
        } else if (beside != null) {
          began.put(call, Math.max(began(call), began(beside)));
        }
      }
    }
  }

  private static long median(List<Long> values) {
    List<Long> sorted = values.stream().sorted().toList();
    return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2);
  }
}
