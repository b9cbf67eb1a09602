package dev.tutti.gloo;

import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.Collectives;
import dev.tutti.gloo.algorithm.TuttiCollectives;
import dev.tutti.gloo.algorithm.WireCollectives;
import dev.tutti.gloo.hier.TwoLevelCollectives;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.shm.ShmCollectives;
import dev.tutti.gloo.shm.SymmetricMemories;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.gloo.transport.Transport;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Tells which ranks of a group share memory, and holds this rank's part of it. */
final class SharedHost implements AutoCloseable {
  private final HostGroups groups;
  private final ShmChannel channel;
  private final @Nullable SymmetricMemories memories;

  SharedHost(HostGroups groups, ShmChannel channel, @Nullable SymmetricMemories memories) {
    this.groups = groups;
    this.channel = channel;
    this.memories = memories;
  }

  /** Tells whether all ranks share one memory. */
  public boolean isOneHost() {
    return groups.hosts() == 1;
  }

  /**
   * Returns the collectives of ranks that all share one memory; closed in place of this.
   *
   * @param readsMemory whether this rank reads the memory of others, and they its own, where the
   *     system and the JVM allow it
   * @param mapsTensors whether it may map their large tensors for that
   */
  public Collectives inMemory(boolean readsMemory, boolean mapsTensors) {
    return new ShmCollectives(channel, Objects.requireNonNull(memories), readsMemory, mapsTensors);
  }

  /**
   * Returns the collectives of ranks on several hosts; closed in place of this.
   *
   * @param transport connects all ranks
   * @param wire numbers the collectives
   * @param table the same on all ranks
   */
  public Collectives onTwoLevels(Transport transport, WireCollectives wire, AlgorithmTable table) {
    return new TwoLevelCollectives(
        groups, channel, transport, wire, new TuttiCollectives(transport, wire, table), table);
  }

  /** Returns the symmetric memory of the group, null where its ranks are on several hosts. */
  public @Nullable SymmetricMemories memories() {
    return memories;
  }

  /** Returns the ranks of each host, as in {@code [0, 1] [2, 3]}. */
  @Override
  public String toString() {
    return groups.toString();
  }

  @Override
  public void close() {
    channel.close();
  }
}
