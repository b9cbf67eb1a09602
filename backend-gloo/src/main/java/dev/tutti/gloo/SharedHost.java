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

/**
 * The ranks of a group that share memory, and this rank's part of that memory.
 *
 * @param groups the ranks of each host
 * @param channel connects the ranks of this host
 * @param memories their symmetric memory; null if there are several hosts
 */
record SharedHost(HostGroups groups, ShmChannel channel, @Nullable SymmetricMemories memories)
    implements AutoCloseable {
  /** Returns whether all ranks share one memory. */
  public boolean isOneHost() {
    return groups.hosts() == 1;
  }

  /**
   * Returns the backend for ranks that all share one memory; close it instead of this.
   *
   * @param readsMemory whether this rank and the others read each other's memory, if the system and
   *     the JVM allow it
   * @param mapsTensors whether this rank may map the others' large tensors for that
   */
  public GlooBackend inMemory(Wire wire, boolean readsMemory, boolean mapsTensors) {
    return new ShmBackend(
        wire, channel, Objects.requireNonNull(memories), readsMemory, mapsTensors);
  }

  /**
   * Returns the backend for ranks on several hosts; close it instead of this.
   *
   * @param wire connects all ranks
   * @param table the table of algorithms, the same on all ranks
   */
  public GlooBackend onTwoLevels(Wire wire, AlgorithmTable table) {
    return new TwoLevelBackend(groups, channel, wire, table);
  }

  @Override
  public void close() {
    channel.close();
  }
}
