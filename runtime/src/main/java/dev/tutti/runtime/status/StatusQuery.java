package dev.tutti.runtime.status;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.membership.ChangeInput.Read;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.spi.Time;
import dev.tutti.store.PrefixStore;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Asks all ranks of the job at a store where they stand. Used by one thread at a time. */
public final class StatusQuery implements AutoCloseable {
  /*
   * In a job that continued with other members, those of the current generation are asked, by their
   * numbers. The log says who they are.
   */
  private static final System.Logger LOG = System.getLogger(StatusQuery.class.getName());
  private static final Pattern JOINED = Pattern.compile("tutti/(\\d+)(?:\\.(\\d+))?/joined/(\\d+)");

  private final Store store;
  private final Inquiry inquiry;
  private final SortedSet<Integer> ranks;
  private Membership members = new Membership();
  private final List<String> written = new ArrayList<>();
  private long round;

  private StatusQuery(Store store, SortedSet<Integer> ranks, boolean once, Time time) {
    this.store = store;
    this.ranks = ranks;
    HexFormat hex = HexFormat.of();
    this.inquiry =
        new Inquiry(hex.toHexDigits(time.random()) + hex.toHexDigits(time.random()), once);
  }

  private record Life(long restart, long earlier) {
    Store of(Store all) {
      return new PrefixStore("tutti/" + restart + (earlier == 0 ? "" : "." + earlier), all);
    }
  }

  /**
   * Prepares to ask the last job that joined at a store; empty if none has.
   *
   * @param store the store; it stays open when this query is closed
   * @param once whether {@link #ask} will be called only once
   * @param time makes the name of the inquiry
   */
  public static Optional<StatusQuery> of(Store store, boolean once, Time time) {
    SortedMap<Life, SortedSet<Integer>> joined =
        new TreeMap<>(Comparator.comparingLong(Life::restart).thenComparingLong(Life::earlier));
    for (String key : store.listKeys()) {
      Matcher parts = JOINED.matcher(key);
      if (parts.matches()) {
        String earlier = parts.group(2);
        Life life =
            new Life(Long.parseLong(parts.group(1)), earlier == null ? 0 : Long.parseLong(earlier));
        joined.computeIfAbsent(life, _ -> new TreeSet<>()).add(Integer.valueOf(parts.group(3)));
      }
    }
    return Optional.ofNullable(joined.lastEntry())
        .map(last -> new StatusQuery(last.getKey().of(store), last.getValue(), once, time));
  }

  /**
   * Prepares to ask all ranks of a job, as often as needed.
   *
   * @param keys the keys of one life of the job; closed with this query
   * @param size the number of ranks
   * @param time makes the name of the inquiry
   */
  public static StatusQuery ofJob(Store keys, int size, Time time) {
    StatusQuery query = new StatusQuery(keys, new TreeSet<>(), false, time);
    query.addBelow(size);
    return query;
  }

  /**
   * Returns the ranks that are asked: those that had joined, and others that were added; after a
   * change, the numbers of the members.
   */
  public SortedSet<Integer> ranks() {
    return new TreeSet<>(members.generation() == 0 ? ranks : members.members());
  }

  /** Asks all ranks below a number from now on; an answer says how many ranks there are. */
  public void addBelow(int size) {
    for (int rank = 0; rank < size; rank++) {
      ranks.add(rank);
    }
  }

  /** Returns whether a rank has joined; ranks of PyTorch never do. */
  public boolean hasJoined(int rank) {
    return store.check(List.of("joined/" + rank));
  }

  /** Returns the keys of the job that is asked. */
  public Store store() {
    return store;
  }

  /** Returns the ranks that have left since by closing the group of all ranks. */
  public SortedSet<Integer> left() {
    return ranks().stream()
        .filter(rank -> store.check(List.of("left/" + rank)))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /**
   * Asks once more, and returns what each rank answered in time.
   *
   * @param limit how long to wait for answers
   */
  public SortedMap<Integer, byte[]> ask(Duration limit) {
    round++;
    set(inquiry.askKey(round), "1");
    readLog();
    if (round == 1) {
      log(inquiry.encode());
    }
    SortedMap<Integer, byte[]> answers = new TreeMap<>();
    SortedSet<Integer> asked = ranks();
    asked.removeAll(left());
    List<String> keys = asked.stream().map(rank -> inquiry.answerKey(round, rank)).toList();
    try {
      store.await(keys, keys.isEmpty() ? Duration.ZERO : limit);
    } catch (StoreTimeoutException e) {
      LOG.log(Level.TRACE, "not all ranks answered: {0}", e);
    }
    for (int rank : asked) {
      String key = inquiry.answerKey(round, rank);
      if (store.check(List.of(key))) {
        answers.put(rank, store.get(key));
        boolean _ = store.deleteKey(key);
      } else {
        written.add(key);
      }
    }
    return answers;
  }

  private void readLog() {
    boolean _ = skip();
    for (String next = nextKey(); store.check(List.of(next)); next = nextKey()) {
      take(store.get(next));
    }
  }

  /** Continues where the log begins, if entries that were not read are deleted. */
  private boolean skip() {
    LogStart start = LogStart.read(store);
    boolean isBehind = start.first() > members.read() + 1;
    if (isBehind) {
      members = start.members();
    }
    return isBehind;
  }

  private void log(byte[] entry) {
    byte[] there = null;
    while (!Arrays.equals(there, entry) || skip()) {
      Store.Swap swap = store.compareSet(nextKey(), null, entry);
      there = swap.stored() ? entry : swap.value();
      take(Objects.requireNonNull(there));
    }
  }

  private String nextKey() {
    return "event/" + (members.read() + 1);
  }

  private void take(byte[] entry) {
    boolean _ = members.take(Read.of(members.read() + 1, entry, -1));
  }

  private void set(String key, String value) {
    store.set(key, value);
    written.add(key);
  }

  /** Removes from the store everything that was written, except the entry in the log. */
  @Override
  public void close() {
    try {
      for (String key : written) {
        boolean _ = store.deleteKey(key);
      }
    } catch (StoreConnectionException e) {
      // The keys have ended with the store.
    }
    written.clear();
    store.close();
  }
}
