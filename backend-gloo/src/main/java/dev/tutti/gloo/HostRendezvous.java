package dev.tutti.gloo;

import dev.tutti.RendezvousException;
import dev.tutti.gloo.shm.HostRings;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.shm.ShmFile;
import dev.tutti.gloo.shm.ShmLayout;
import dev.tutti.gloo.shm.SymmetricMemories;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.gloo.topology.HostInvitation;
import dev.tutti.gloo.topology.HostResult;
import dev.tutti.gloo.topology.HostSearch;
import dev.tutti.gloo.topology.RankList;
import dev.tutti.gloo.transport.Members;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Bootstrap;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Lets the ranks of each host share memory. Among the ranks that see the same directory, the lowest
 * creates the memory and publishes its location; the others map and sign it. The memory is used
 * only if the lowest rank then sees the signatures of all of them in it. All ranks of a group must
 * call this, or none may.
 */
final class HostRendezvous {
  /*
   * A leader publishes under "host/memory/RANK" what its followers need. Every other rank publishes
   * there that it leads nobody: a rank that it does not see may nevertheless see it, and wait for
   * that key. Each rank then publishes one result: a follower publishes that it signed, or why it
   * could not; a leader first reads its followers' results and checks for their signatures, then
   * publishes which ranks it leads. All ranks read all results, and so arrive at the same groups:
   * those that the leaders name. All ranks read the offers and results, and so reject the same
   * ones; only its followers read what a leader publishes for them. A follower that cannot read it
   * therefore says so in its result, so that all ranks do without the memory.
   */
  private static final Logger LOG = System.getLogger(HostRendezvous.class.getName());
  private static final String MEMORY = "host/memory";
  private static final String RESULT = "host/result";
  private static final byte[] NONE = {'!'};
  private static final int MOST_REASONS = 16;

  private final BackendContext context;
  private final Path directory;
  private final long budget;
  private final boolean twoLevel;
  private final long deadline;
  private final Bootstrap bootstrap;
  private final int rank;
  private @Nullable ShmFile memory;
  private int[] members;

  /**
   * Prepares the rendezvous.
   *
   * @param context the rank, its group and the store
   * @param directory a directory of an in-memory file system
   * @param budget the number of bytes of shared memory for the ranks of a host; 0 for no shared
   *     memory
   * @param twoLevel whether to share memory even if not all ranks of the group can
   * @param deadline the deadline of all steps together, in terms of the group's clock
   */
  public HostRendezvous(
      BackendContext context, Path directory, long budget, boolean twoLevel, long deadline) {
    this.context = context;
    this.directory = directory;
    this.budget = budget;
    this.twoLevel = twoLevel;
    this.deadline = deadline;
    this.bootstrap = context.bootstrap();
    this.rank = context.rank();
    this.members = new int[] {rank};
  }

  /**
   * Meets the other ranks, once.
   *
   * @param transport connects the ranks
   * @param spinNanos how long a rank polls before it yields its core
   * @return the ranks that share memory; empty if no rank shares memory with another
   * @throws RendezvousException naming a rank that published data no Tutti rank publishes
   * @throws Exception if memory is shared but a peer cannot be reached
   */
  public Optional<SharedHost> meet(Transport transport, long spinNanos) throws Exception {
    try {
      HostGroups groups = findGroups();
      if (groups.areAllAlone()) {
        return Optional.empty();
      }
      int[] ranks = groups.ranksOf(groups.hostOf(rank));
      ShmFile shared = memory;
      ShmLayout layout;
      if (shared == null || ranks.length == 1) {
        layout = ShmLayout.ofOne();
        shared = ShmFile.ofOne(layout.bytes(), context.time());
      } else {
        memory = null;
        layout = ShmLayout.within(ranks.length, budget);
      }
      return Optional.of(share(shared, layout, transport, spinNanos, groups));
    } finally {
      if (memory != null) {
        memory.close();
      }
    }
  }

  private SharedHost share(
      ShmFile shared, ShmLayout layout, Transport transport, long spinNanos, HostGroups groups)
      throws Exception {
    int[] ranks = groups.ranksOf(groups.hostOf(rank));
    try {
      if (layout.ringBytes() > 0) {
        transport.share(ranks, new HostRings(shared, layout), context.store(), deadline);
      }
      if (groups.hosts() > 1) {
        Members members = new Members(transport, ranks);
        return new SharedHost(groups, new ShmChannel(shared, layout, members, spinNanos), null);
      }
      ShmChannel channel = new ShmChannel(shared, layout, transport, spinNanos);
      return new SharedHost(
          groups,
          channel,
          new SymmetricMemories(channel, transport, context.group(), directory, spinNanos));
    } catch (Exception | Error e) {
      shared.close();
      throw e;
    }
  }

  private HostGroups findGroups() {
    try (HostSearch search = HostSearch.begin(context, directory, budget, twoLevel, deadline)) {
      HostResult result;
      if (search.members().length > 1) {
        result = lead(search.members());
      } else {
        bootstrap.publish(MEMORY, NONE);
        result = search.leader() == rank ? alone(search) : follow(search.leader());
      }
      bootstrap.publish(RESULT, result.toBytes());
      HostResult[] results = readAll(IntStream.range(0, context.size()).toArray());
      report(results);
      return groups(results);
    }
  }

  private HostResult alone(HostSearch search) {
    return search.problem().isEmpty() ? HostResult.nothing() : refusal(search.problem());
  }

  private HostResult lead(int[] led) {
    members = led;
    try {
      HostResult otherwise = invite();
      ShmFile made = memory;
      HostResult[] answers = readAll(Arrays.copyOfRange(members, 1, members.length));
      boolean signed = made != null;
      for (int place = 1; signed && made != null && place < members.length; place++) {
        HostResult answer = answers[place - 1];
        signed = answer.follows() && answer.leader() == rank && made.isJoined(place);
      }
      return signed ? HostResult.leads(members) : otherwise;
    } finally {
      if (memory != null) {
        memory.unlink();
      }
    }
  }

  /** Creates the memory and sends the members where it is, or returns why there is none. */
  private HostResult invite() {
    try {
      ShmFile made =
          ShmFile.create(
              directory, ShmLayout.within(members.length, budget).bytes(), context.time());
      memory = made;
      bootstrap.publish(MEMORY, new HostInvitation(made.describe(), members).toBytes());
      return HostResult.nothing();
    } catch (IOException | IllegalArgumentException e) {
      bootstrap.publish(MEMORY, NONE);
      return refusal(String.valueOf(e.getMessage()));
    }
  }

  private HostResult follow(int leader) {
    byte[] published =
        bootstrap
            .collect(MEMORY, new int[] {leader}, "publish the memory to share", deadline)
            .get(0);
    if (Arrays.equals(published, NONE)) {
      return HostResult.nothing();
    }
    try {
      HostInvitation invitation = HostInvitation.read(published, leader, context.size());
      int place = invitation.placeOf(rank);
      if (place < 0) {
        return refusal(
            "sees the probe file of rank "
                + leader
                + ", but that rank does not see the probe file of this one");
      }
      long bytes = ShmLayout.within(invitation.members().length, budget).bytes();
      memory = ShmFile.open(directory, invitation.memory(), bytes, place, context.time());
      members = invitation.members();
      return HostResult.follows(leader);
    } catch (IOException | IllegalArgumentException e) {
      return refusal("cannot use the memory of rank " + leader + ": " + e.getMessage());
    }
  }

  private HostResult refusal(String why) {
    return HostResult.refuses("rank " + rank + ": " + why);
  }

  private HostResult[] readAll(int[] peers) {
    List<byte[]> published =
        bootstrap.collect(
            RESULT,
            peers,
            "publish the result of the search for ranks that share memory",
            deadline);
    HostResult[] results = new HostResult[peers.length];
    for (int i = 0; i < peers.length; i++) {
      try {
        results[i] = HostResult.read(published.get(i), peers[i], context.size());
      } catch (IllegalArgumentException e) {
        throw HostSearch.unreadable(context, peers[i], e);
      }
    }
    return results;
  }

  private HostGroups groups(HostResult[] results) {
    try {
      HostGroups groups = HostGroups.of(HostResult.leaders(results));
      int[] found = groups.ranksOf(groups.hostOf(rank));
      if (found.length > 1 && !Arrays.equals(found, members)) {
        throw new IllegalArgumentException(
            "ranks "
                + RankList.join(found)
                + " would share memory that was made for ranks "
                + RankList.join(members));
      }
      return groups;
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(
          "rank "
              + rank
              + " of group "
              + context.group()
              + " cannot share memory: "
              + e.getMessage(),
          e);
    }
  }

  private void report(HostResult[] results) {
    String reasons =
        Arrays.stream(results)
            .map(HostResult::reason)
            .filter(reason -> !reason.isEmpty())
            .limit(MOST_REASONS)
            .collect(Collectors.joining("; "));
    if (rank == 0 && !reasons.isEmpty()) {
      LOG.log(
          Level.WARNING,
          "rank {0} of group {1}: some ranks cannot use shared memory; their messages go through"
              + " sockets ({2})",
          rank,
          context.group(),
          reasons);
    }
  }
}
