package dev.tutti.gloo.shm;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.SymmetricMemory;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Allocates the symmetric memory of a group whose ranks share a host, and keeps track of the open
 * allocations.
 */
public final class SymmetricMemories implements AutoCloseable {
  /*
   * Rank 0 creates a file and sends its path to the others through the channel; the text "!" says
   * that there is no file, for the reason in rank 0's slot. The others map and sign the file. Every
   * rank then shows, in its slot, an empty text or what went wrong, so that all ranks reach the
   * same outcome. Rank 0 then removes the file, which the mappings keep alive.
   */
  private static final int TEXT_BYTES = 4096 - Integer.BYTES;
  private static final int REPORT_BYTES = 1024;
  private static final String REFUSAL = "!";

  private final @Nullable ShmChannel channel;
  private final Transport transport;
  private final String group;
  private final Path directory;
  private final long spinNanos;
  private final List<HostSymmetricMemory> all = new ArrayList<>();
  private volatile HostSymmetricMemory[] open = {};
  private long allocations;

  /**
   * Creates the allocator of a group.
   *
   * @param channel connects the ranks; null if there is only one
   * @param transport the transport of the ranks
   * @param group the name of the group
   * @param directory a directory of an in-memory file system
   * @param spinNanos how long a waiting thread polls
   */
  public SymmetricMemories(
      @Nullable ShmChannel channel,
      Transport transport,
      String group,
      Path directory,
      long spinNanos) {
    this.channel = channel;
    this.transport = transport;
    this.group = group;
    this.directory = directory;
    this.spinNanos = spinNanos;
  }

  /**
   * Allocates symmetric memory; all ranks call this together, as a collective.
   *
   * @param byteSize the number of bytes of each rank, at least 1
   * @throws BackendException on all ranks, if one of them cannot allocate the memory
   */
  public SymmetricMemory allocate(Operation op, long byteSize) throws Exception {
    SymmetricLayout layout = new SymmetricLayout(transport.size(), byteSize);
    int rank = transport.rank();
    if (channel != null) {
      channel.enter(Signature.of(OpType.ALLOCATE_SYMMETRIC, DType.UINT8, 0, byteSize));
    }
    ShmFile file = null;
    try {
      String where;
      String problem = "";
      if (rank == 0) {
        try {
          file = ShmFile.create(directory, layout.bytes(), transport.time());
          where = file.describe();
        } catch (IOException | RuntimeException e) {
          problem = "rank 0: " + e;
          where = REFUSAL;
        }
        tell(op, where);
      } else {
        where = tell(op, "");
        try {
          file =
              where.equals(REFUSAL)
                  ? null
                  : ShmFile.open(directory, where, layout.bytes(), rank, transport.time());
        } catch (IOException | RuntimeException e) {
          problem = "rank " + rank + ": " + e;
        }
      }
      problem = firstProblem(op, problem);
      if (file == null || !problem.isEmpty()) {
        if (channel != null) {
          // A rank that was stalled finds what the others left behind when they gave up.
          channel.throwIfOver(op);
        }
        throw new BackendException(
            "allocateSymmetric on rank "
                + rank
                + ": no symmetric memory of "
                + byteSize
                + " bytes for each rank of group "
                + group
                + ": "
                + problem);
      }
      HostSymmetricMemory memory =
          new HostSymmetricMemory(
              ++allocations, file, layout, transport, group, spinNanos, this::remove);
      if (rank == 0) {
        file.unlink();
      }
      file = null;
      add(memory);
      return memory;
    } finally {
      if (file != null) {
        if (rank == 0) {
          file.unlink();
        }
        file.close();
      }
    }
  }

  /** Distributes rank 0's text to all ranks. */
  private String tell(Operation op, String text) throws Exception {
    if (channel == null) {
      return text;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(Integer.BYTES + TEXT_BYTES, Integer.BYTES);
      if (channel.rank == 0) {
        write(memory, text, TEXT_BYTES);
      }
      new StagedBroadcast(channel).run(op, memory, memory.byteSize(), 0);
      return read(memory, TEXT_BYTES);
    }
  }

  /**
   * Sends all ranks what went wrong on this one, and returns what went wrong on the first rank that
   * failed.
   */
  private String firstProblem(Operation op, String own) throws Exception {
    if (channel == null) {
      return own;
    }
    MemorySegment[] slots = channel.beginSlots();
    write(slots[channel.rank], own, REPORT_BYTES);
    channel.publishSlot();
    channel.awaitSlots(op);
    for (MemorySegment slot : slots) {
      String problem = read(slot, REPORT_BYTES);
      if (!problem.isEmpty()) {
        return problem;
      }
    }
    return "";
  }

  private static void write(MemorySegment memory, String text, int limit) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int length = Math.min(limit, bytes.length);
    memory.set(ValueLayout.JAVA_INT, 0, length);
    MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, Integer.BYTES, length);
  }

  private static String read(MemorySegment memory, int limit) {
    int length = memory.get(ValueLayout.JAVA_INT, 0);
    if (length < 0 || length > limit) {
      throw new IllegalStateException("a rank wrote a text of " + length + " bytes");
    }
    byte[] bytes = new byte[length];
    MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, Integer.BYTES, bytes, 0, bytes.length);
    return Printable.decode(bytes);
  }

  /**
   * Returns whether there has ever been an allocation; between collectives the answer is the same
   * on all ranks.
   */
  boolean isUsed() {
    return allocations > 0;
  }

  /**
   * Finds the memory whose buffer of this rank contains a tensor, and enters it.
   *
   * @param tensor native memory
   * @param bytes the size of the tensor in bytes
   * @return the memory, which the caller must leave, or null if there is none
   */
  @Nullable HostSymmetricMemory enter(MemorySegment tensor, long bytes) {
    for (HostSymmetricMemory memory : open) {
      if (memory.offsetOf(tensor, bytes) >= 0) {
        return memory.enter() ? memory : null;
      }
    }
    return null;
  }

  private synchronized void add(HostSymmetricMemory memory) {
    all.add(memory);
    open = all.toArray(HostSymmetricMemory[]::new);
  }

  private synchronized void remove(HostSymmetricMemory memory) {
    all.remove(memory);
    open = all.toArray(HostSymmetricMemory[]::new);
  }

  @Override
  public void close() {
    IllegalStateException first = null;
    for (HostSymmetricMemory memory : open) {
      try {
        memory.close();
      } catch (IllegalStateException e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
