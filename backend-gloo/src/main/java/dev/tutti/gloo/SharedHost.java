package dev.tutti.gloo;

import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.backend.GlooBackend;
import dev.tutti.gloo.backend.Wire;
import dev.tutti.gloo.hier.TwoLevelBackend;
import dev.tutti.gloo.shm.ShmBackend;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.shm.SymmetricMemories;
import dev.tutti.gloo.topology.HostGroups;
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
   * Returns the backend of ranks that all share one memory; closed in place of this.
   *
   * @param readsMemory whether this rank reads the memory of others, and they its own, where the
   *     system and the JVM allow it
   * @param mapsTensors whether it may map their large tensors for that
   */
  public GlooBackend inMemory(Wire wire, boolean readsMemory, boolean mapsTensors) {
    return new ShmBackend(
        wire, channel, Objects.requireNonNull(memories), readsMemory, mapsTensors);
  }

  /**
   * Returns the backend of ranks on several hosts; closed in place of this.
   *
   * @param wire to all ranks
   * @param table the same on all ranks
   */
  public GlooBackend onTwoLevels(Wire wire, AlgorithmTable table) {
    return new TwoLevelBackend(groups, channel, wire, table);
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
