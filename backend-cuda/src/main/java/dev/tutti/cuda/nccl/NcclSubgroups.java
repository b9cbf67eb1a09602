package dev.tutti.cuda.nccl;

import dev.tutti.RendezvousException;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import java.util.List;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * The subgroups of a group with PyTorch ranks, created as c10d does: all ranks of the group split
 * its communicator, and those that are not members get none.
 */
public final class NcclSubgroups {
  private static final long FIRST = 0x9E3779B185EBCA87L;
  private static final long SECOND = 0xC2B2AE3D27D4EB4FL;
  private static final long FIFTH = 0x27D4EB2F165667C5L;

  private final BackendContext parent;
  private final Communicator communicator;
  private final NcclLauncher launcher;
  private final BiFunction<BackendContext, Split, Backend> maker;

  /**
   * The step that creates the communicator of a new group in which this rank has announced itself.
   */
  interface Split {
    Communicator split(String name, int rank, long deadlineNanos, Runnable look);
  }

  /**
   * Creates an object that makes subgroups.
   *
   * @param parent the context of the group of all ranks
   * @param communicator the communicator of that group
   * @param launcher the launcher for that communicator
   * @param maker creates a backend from a communicator of its ranks
   */
  NcclSubgroups(
      BackendContext parent,
      Communicator communicator,
      NcclLauncher launcher,
      BiFunction<BackendContext, Split, Backend> maker) {
    this.parent = parent;
    this.communicator = communicator;
    this.launcher = launcher;
    this.maker = maker;
  }

  /** Creates the backend of a member. */
  Backend create(BackendContext context, List<Integer> ranks) {
    int color = color(ranks);
    return maker.apply(
        context,
        (name, rank, deadlineNanos, look) -> {
          Communicator made = split(name, color, rank, deadlineNanos, look);
          if (made == null) {
            throw new AssertionError("a member without a communicator");
          }
          return made;
        });
  }

  /** Takes part as a rank that is not a member. */
  void pass(List<Integer> ranks, long deadlineNanos) {
    String name = "rank " + parent.rank() + "/" + parent.size() + ", not a member of " + ranks;
    Communicator _ = split(name, NcclCalls.NO_COLOR, 0, deadlineNanos, () -> {});
  }

  private @Nullable Communicator split(
      String name, int color, int rank, long deadlineNanos, Runnable look) {
    boolean done = false;
    try {
      Communicator made =
          launcher.whenIdle(
              deadlineNanos, () -> communicator.split(name, color, rank, deadlineNanos, look));
      done = true;
      return made;
    } catch (RuntimeException e) {
      RuntimeException failure = e instanceof RendezvousException ? withCause(e) : e;
      // The group's communicator is stuck in the split forever.
      parent.onFailure().failed(failure, -1);
      throw failure;
    } finally {
      if (!done) {
        communicator.abort(new IllegalStateException(name + ": the communicator was not created"));
      }
    }
  }

  private static RendezvousException withCause(RuntimeException late) {
    return new RendezvousException(
        late.getMessage()
            + "; if there is a rank of PyTorch that was given no device_id, "
            + OrderedMessages.REMEDY,
        late);
  }

  /**
   * Returns the color that c10d assigns to the members: Python's hash of the tuple of their ranks,
   * without its sign, modulo 2^31.
   */
  public static int color(List<Integer> ranks) {
    long hash = FIFTH;
    for (int rank : ranks) {
      hash = Long.rotateLeft(hash + rank * SECOND, 31) * FIRST;
    }
    hash += ranks.size() ^ (FIFTH ^ 3527539L);
    long signed = hash == -1 ? 1546275796 : hash;
    return (int) (Math.abs(signed) & Integer.MAX_VALUE);
  }
}
