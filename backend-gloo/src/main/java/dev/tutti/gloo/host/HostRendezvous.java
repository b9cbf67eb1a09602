package dev.tutti.gloo.host;

import dev.tutti.Store;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.BackendContext;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Lets the ranks of a host share memory: rank 0 makes it and publishes where, the others map and
 * sign it, and it is used only if all see the same. All ranks must call this, or none.
 */
public final class HostRendezvous {
  /*
   * Rank 0 publishes "host/0", the others "host/RANK". A value is what a peer needs, or "!" and the
   * reason why there is nothing. Everybody reads all values, so all come to the same decision.
   */
  private static final Logger LOG = System.getLogger(HostRendezvous.class.getName());
  private static final String KEY = "host/";
  private static final String REFUSAL = "!";

  private final BackendContext context;
  private final Path directory;
  private final long budget;

  /**
   * Prepares to meet.
   *
   * @param context which rank of which group, and its store
   * @param directory of a file system in memory
   * @param budget bytes of shared memory for the group; 0 to do without
   */
  public HostRendezvous(BackendContext context, Path directory, long budget) {
    this.context = context;
    this.directory = directory;
    this.budget = budget;
  }

  /**
   * Meets the other ranks.
   *
   * @param transport connects the ranks
   * @param spinNanos how long a rank polls before it gives its core away
   * @param timeout for the whole
   * @return the collectives, or nothing if the ranks cannot share memory
   * @throws Exception if memory is shared, but a peer cannot be reached
   */
  public Optional<HostCollectives> meet(Transport transport, long spinNanos, Duration timeout)
      throws Exception {
    HostMemory memory = null;
    String answer;
    try {
      memory = context.rank() == 0 ? create() : open(timeout);
      answer = memory.describe();
    } catch (IOException | IllegalArgumentException e) {
      answer = REFUSAL + "rank " + context.rank() + ": " + e.getMessage();
    }
    boolean shared = false;
    try {
      shared = agree(memory, answer, timeout);
    } finally {
      if (memory != null) {
        if (context.rank() == 0) {
          memory.unlink();
        }
        if (!shared) {
          memory.close();
        }
      }
    }
    if (memory == null || !shared) {
      return Optional.empty();
    }
    HostLayout layout = layout();
    try {
      if (layout.ringBytes() > 0) {
        transport.share(new HostRings(memory, layout), timeout);
      }
    } catch (Exception | Error e) {
      memory.close();
      throw e;
    }
    HostChannel channel = new HostChannel(memory, layout, transport, spinNanos);
    return Optional.of(
        new HostCollectives(
            channel,
            SymmetricMemories.of(channel, transport, context.group(), directory, spinNanos)));
  }

  private HostMemory create() throws IOException {
    return HostMemory.create(directory, layout().bytes());
  }

  private HostMemory open(Duration timeout) throws IOException {
    String made = new String(context.store().get(KEY + 0, timeout), StandardCharsets.UTF_8);
    if (made.startsWith(REFUSAL)) {
      throw new IOException("rank 0 made none");
    }
    return HostMemory.open(made, layout().bytes(), context.rank());
  }

  private HostLayout layout() {
    if (budget == 0) {
      throw new IllegalArgumentException("switched off");
    }
    return HostLayout.within(context.size(), budget);
  }

  private boolean agree(@Nullable HostMemory memory, String answer, Duration timeout) {
    Store store = context.store();
    store.set(KEY + context.rank(), answer.getBytes(StandardCharsets.UTF_8));
    List<String> keys = IntStream.range(0, context.size()).mapToObj(rank -> KEY + rank).toList();
    for (byte[] value : store.multiGet(keys, timeout)) {
      String text = new String(value, StandardCharsets.UTF_8);
      if (text.startsWith(REFUSAL)) {
        Level level = text.endsWith("switched off") ? Level.DEBUG : Level.WARNING;
        LOG.log(
            context.rank() == 0 ? level : Level.DEBUG,
            "rank {0} of group {1}: no shared memory, messages go through sockets ({2})",
            context.rank(),
            context.group(),
            text.substring(1));
        return false;
      }
    }
    for (int rank = 0; rank < context.size(); rank++) {
      if (memory == null || !memory.isJoined(rank)) {
        return false;
      }
    }
    return true;
  }
}
