package dev.tutti.cuda.collective;

import static dev.tutti.cuda.driver.DeviceAttribute.MULTICAST;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.PeerMemory;
import dev.tutti.cuda.share.PeerWorld;
import dev.tutti.kernels.ReduceCall;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The symmetric memories of a group: allocates them, and tracks those that are open. Thread-safe.
 */
final class CudaSymmetricMemories implements AutoCloseable {
  private static final long PAD_ALIGNMENT = 256;

  private final CudaDevice device;
  private final PeerWorld peers;
  private final String group;
  private final boolean multicast;
  private final List<CudaSymmetricMemory> open = new ArrayList<>();
  private volatile CudaSymmetricMemory[] seen = {};
  private volatile boolean recorded;
  private @Nullable Throwable aborted;

  CudaSymmetricMemories(CudaDevice device, PeerWorld peers, String group, Settings settings) {
    this.device = device;
    this.peers = peers;
    this.group = group;
    this.multicast =
        !settings.get(CudaSettings.DISABLE_MULTICAST)
            && Parts.of(device).context().driver().devices().attribute(device.index(), MULTICAST)
                != 0;
  }

  /**
   * Allocates symmetric memory; all ranks must call this together.
   *
   * @param op the operation, which carries the deadline
   * @param byteSize the number of bytes on each rank, at least 1
   * @throws BackendException on all ranks, if any of them cannot allocate
   */
  CudaSymmetricMemory allocate(Operation op, long byteSize) {
    int size = peers.exchange().size();
    long words = SymmetricPlan.wordBytes(size);
    long pad = (words + PAD_ALIGNMENT - 1) / PAD_ALIGNMENT * PAD_ALIGNMENT;
    long total = byteSize > Long.MAX_VALUE - pad ? Long.MAX_VALUE : byteSize + pad;
    PeerMemory memory;
    try {
      memory = PeerMemory.allocate(peers, total, usedNumbers(), op.deadlineNanos());
    } catch (BackendException e) {
      throw new BackendException(
          ("allocateSymmetric on rank %s: cannot allocate symmetric memory of %s bytes on each rank"
                  + " of group %s: %s")
              .formatted(peers.exchange().rank(), byteSize, group, e.getMessage()),
          e);
    }
    CudaSymmetricMemory made =
        new CudaSymmetricMemory(
            device,
            memory,
            new SymmetricPlan(
                group, peers.exchange().rank(), size, pad, byteSize, free(memory.usedNumbers())),
            multicast,
            this::remove,
            this::free);
    synchronized (this) {
      open.add(made);
      seen = open.toArray(CudaSymmetricMemory[]::new);
      if (aborted != null) {
        made.abort(aborted);
      }
    }
    return made;
  }

  /** Returns the lowest unused number, or 0 if all are in use. */
  private static int free(long used) {
    int number = Long.numberOfTrailingZeros(~used >>> 1) + 1;
    return number <= ReduceCall.MAX_SHARED ? number : 0;
  }

  private synchronized long usedNumbers() {
    long used = 0;
    for (CudaSymmetricMemory memory : open) {
      used |= 1L << memory.plan().number();
    }
    return used;
  }

  /**
   * Returns the memory in which this rank's buffer contains an area, if kernels may use that memory
   * by its number. Allocates nothing.
   */
  @Nullable CudaSymmetricMemory find(long address, long bytes) {
    for (CudaSymmetricMemory memory : seen) {
      if (memory.plan().number() > 0 && memory.holds(address, bytes)) {
        return memory;
      }
    }
    return null;
  }

  private synchronized void remove(CudaSymmetricMemory memory) {
    open.remove(memory);
    seen = open.toArray(CudaSymmetricMemory[]::new);
  }

  /** Notes that graphs may contain addresses of the memories. */
  void recorded() {
    recorded = true;
  }

  private void free(PeerMemory memory) {
    if (recorded) {
      Parts.of(device).staleGraphs().keep(group, memory.retire());
    } else {
      memory.close();
    }
  }

  /** Ends all waits, now and in the future. */
  synchronized void abort(Throwable cause) {
    aborted = cause;
    open.forEach(memory -> memory.abort(cause));
  }

  @Override
  public void close() {
    List<CudaSymmetricMemory> all;
    synchronized (this) {
      all = List.copyOf(open);
    }
    all.forEach(CudaSymmetricMemory::close);
  }
}
