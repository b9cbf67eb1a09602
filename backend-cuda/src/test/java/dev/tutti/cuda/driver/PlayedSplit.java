package dev.tutti.cuda.driver;

import dev.tutti.cuda.nccl.NcclCalls;
import java.util.Map;

/** A split in progress; the communicator exists once all ranks have joined. */
final class PlayedSplit implements NcclCalls.Child {
  private final PlayedWorld world;
  private final int number;
  private final int color;
  private final int rank;
  private final Maker maker;
  private long handle;

  /** Creates one rank's side of a communicator. */
  interface Maker {
    long make(PlayedWorld world, int rank);
  }

  /**
   * Adds a rank to a split.
   *
   * @param parent the communicator that is split
   * @param number the number of the split
   * @param rank the rank in the new communicator
   */
  PlayedSplit(PlayedCommunicator parent, int number, int color, int rank, Maker maker) {
    this.world = parent.world;
    this.number = number;
    this.color = color;
    this.rank = rank;
    this.maker = maker;
    world.split(number).put(parent.rank, color);
  }

  boolean isDone() {
    return world.split(number).size() == world.size;
  }

  @Override
  public synchronized long handle() {
    if (handle == 0 && color != NcclCalls.NO_COLOR && isDone()) {
      Map<Integer, Integer> colors = world.split(number);
      int ranks = (int) colors.values().stream().filter(each -> each == color).count();
      handle = maker.make(world.part(number, color, ranks), rank);
    }
    return handle;
  }
}
