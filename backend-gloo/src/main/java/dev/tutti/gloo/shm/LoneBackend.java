package dev.tutti.gloo.shm;

import dev.tutti.Capabilities.Feature;
import dev.tutti.SymmetricMemory;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.backend.SocketBackend;
import dev.tutti.gloo.backend.Wire;
import dev.tutti.spi.Operation;
import java.util.Map;

/** Runs the collectives of a group of one rank, which has symmetric memory. */
public final class LoneBackend extends SocketBackend {
  private final SymmetricMemories memories;

  /**
   * Creates an instance for any number of operations.
   *
   * @param memories the symmetric memory of this rank; closed with this backend
   */
  public LoneBackend(Wire wire, AlgorithmTable table, SymmetricMemories memories) {
    super(wire, table);
    this.memories = memories;
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    return memories.allocate(op, byteSize);
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return Map.of();
  }

  @Override
  public void close() {
    super.close();
    memories.close();
  }
}
