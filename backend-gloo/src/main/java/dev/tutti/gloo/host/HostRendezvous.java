package dev.tutti.gloo.host;

import dev.tutti.Store;
import dev.tutti.gloo.transport.Members;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.BackendContext;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Lets the ranks of each host share memory: of those that see the same directory the lowest makes
 * it and publishes where, the others map and sign it, and it is used only if the first sees all
 * their signatures in it. All ranks of a group must call this, or none.
 */
public final class HostRendezvous {
  /*
   * A leader publishes under "host/memory/RANK" what its followers need. Then each rank publishes one
   * result: a follower that it signed, or why it could not; a leader, who first reads the results of
   * its followers and looks for their signatures, whom it leads. Everybody reads all results, so all
   * come to the same groups: those that leaders name. A text that begins with "!" is a reason to be
   * reported, "-" one that need not be.
   */
  private static final Logger LOG = System.getLogger(HostRendezvous.class.getName());
  private static final String MEMORY = "host/memory/";
  private static final String RESULT = "host/result/";
  private static final String REASON = "!";
  private static final String NOTHING = "-";
  private static final String FOLLOWS = "follows ";
  private static final String LEADS = "leads ";

  private final BackendContext context;
  private final Path directory;
  private final long budget;
  private final boolean twoLevel;
  private final Store store;
  private final int rank;
  private @Nullable HostMemory memory;

  /**
   * Prepares to meet.
   *
   * @param context which rank of which group, and its store
   * @param directory of a file system in memory
   * @param budget bytes of shared memory for the ranks of a host; 0 to do without
   * @param twoLevel whether to share memory also where not all ranks of the group can
   */
  public HostRendezvous(BackendContext context, Path directory, long budget, boolean twoLevel) {
    this.context = context;
    this.directory = directory;
    this.budget = budget;
    this.twoLevel = twoLevel;
    this.store = context.store();
    this.rank = context.rank();
  }

  /**
   * Meets the other ranks, once.
   *
   * @param transport connects the ranks
   * @param spinNanos how long a rank polls before it gives its core away
   * @param timeout for each of a few steps
   * @return who shares memory; nothing if no rank shares any with another one
   * @throws Exception if memory is shared, but a peer cannot be reached
   */
  public Optional<HostMeeting> meet(Transport transport, long spinNanos, Duration timeout)
      throws Exception {
    try {
      HostGroups groups = findGroups(timeout);
      if (groups.areAllAlone()) {
        return Optional.empty();
      }
      int[] ranks = groups.ranksOf(groups.hostOf(rank));
      HostMemory shared = memory;
      HostLayout layout;
      if (shared == null || ranks.length == 1) {
        layout = HostLayout.ofOne();
        shared = HostMemory.ofOne(layout.bytes());
      } else {
        memory = null;
        layout = HostLayout.within(ranks.length, budget);
      }
      return Optional.of(share(shared, layout, transport, spinNanos, timeout, groups));
    } finally {
      if (memory != null) {
        memory.close();
      }
    }
  }

  private HostMeeting share(
      HostMemory shared,
      HostLayout layout,
      Transport transport,
      long spinNanos,
      Duration timeout,
      HostGroups groups)
      throws Exception {
    int[] ranks = groups.ranksOf(groups.hostOf(rank));
    try {
      if (layout.ringBytes() > 0) {
        transport.share(ranks, new HostRings(shared, layout), timeout);
      }
    } catch (Exception | Error e) {
      shared.close();
      throw e;
    }
    if (groups.hosts() > 1) {
      Members members = new Members(transport, ranks);
      return new HostMeeting(groups, new HostChannel(shared, layout, members, spinNanos), null);
    }
    HostChannel channel = new HostChannel(shared, layout, transport, spinNanos);
    return new HostMeeting(
        groups,
        channel,
        SymmetricMemories.of(channel, transport, context.group(), directory, spinNanos));
  }

  private HostGroups findGroups(Duration timeout) {
    try (HostSearch search = HostSearch.begin(context, directory, budget, twoLevel, timeout)) {
      String result;
      if (search.leader() != rank) {
        result = follow(search.leader(), timeout);
      } else if (search.members().length > 1) {
        result = lead(search.members(), timeout);
      } else {
        result = search.problem().isEmpty() ? NOTHING : refusal(search.problem());
      }
      publish(RESULT, result);
      List<String> results = readAll(IntStream.range(0, context.size()), timeout);
      report(results);
      return HostGroups.of(leaders(results));
    }
  }

  private String lead(int[] members, Duration timeout) {
    String result = NOTHING;
    try {
      HostMemory made =
          HostMemory.create(directory, HostLayout.within(members.length, budget).bytes());
      memory = made;
      publish(MEMORY, made.describe() + " " + join(members));
    } catch (IOException | IllegalArgumentException e) {
      result = refusal(String.valueOf(e.getMessage()));
      publish(MEMORY, REASON);
    }
    HostMemory made = memory;
    try {
      List<String> answers = readAll(Arrays.stream(members).skip(1), timeout);
      boolean signed = made != null && answers.stream().allMatch((FOLLOWS + rank)::equals);
      for (int place = 1; signed && made != null && place < members.length; place++) {
        signed = made.isJoined(place);
      }
      return signed ? LEADS + join(members) : result;
    } finally {
      if (made != null) {
        made.unlink();
      }
    }
  }

  private String follow(int leader, Duration timeout) {
    String made = new String(store.get(MEMORY + leader, timeout), StandardCharsets.UTF_8);
    if (made.startsWith(REASON)) {
      return NOTHING;
    }
    int space = made.lastIndexOf(' ');
    List<Integer> members = split(made.substring(space + 1));
    int place = members.indexOf(rank);
    if (place < 0) {
      return refusal("sees rank " + leader + ", which does not see it");
    }
    try {
      long bytes = HostLayout.within(members.size(), budget).bytes();
      memory = HostMemory.open(directory, made.substring(0, space), bytes, place);
      return FOLLOWS + leader;
    } catch (IOException | IllegalArgumentException e) {
      return refusal(String.valueOf(e.getMessage()));
    }
  }

  private String refusal(String why) {
    return REASON + "rank " + rank + ": " + why;
  }

  private void publish(String key, String text) {
    store.set(key + rank, text.getBytes(StandardCharsets.UTF_8));
  }

  private List<String> readAll(IntStream ranks, Duration timeout) {
    List<String> keys = ranks.mapToObj(peer -> RESULT + peer).toList();
    return store.multiGet(keys, timeout).stream()
        .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
        .toList();
  }

  private void report(List<String> results) {
    List<String> reasons = new ArrayList<>();
    for (String result : results) {
      if (result.startsWith(REASON)) {
        reasons.add(result.substring(REASON.length()));
      }
    }
    if (rank == 0 && !reasons.isEmpty()) {
      LOG.log(
          Level.WARNING,
          "rank {0} of group {1}: no shared memory for some ranks, whose messages go through"
              + " sockets ({2})",
          rank,
          context.group(),
          String.join("; ", reasons));
    }
  }

  private static int[] leaders(List<String> results) {
    int[] leaders = IntStream.range(0, results.size()).toArray();
    for (int leader = 0; leader < leaders.length; leader++) {
      String result = results.get(leader);
      if (result.startsWith(LEADS)) {
        for (int member : split(result.substring(LEADS.length()))) {
          leaders[member] = leader;
        }
      }
    }
    return leaders;
  }

  private static String join(int[] ranks) {
    return Arrays.stream(ranks).mapToObj(String::valueOf).collect(Collectors.joining(","));
  }

  private static List<Integer> split(String text) {
    return Arrays.stream(text.split(",", -1)).map(Integer::valueOf).toList();
  }
}
