package dev.tutti.cuda.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A collective operation of a fake communicator, with the inputs of its ranks. */
final class PlayedMeeting {
  private final int size;
  private final Map<Integer, byte[]> brought = new ConcurrentHashMap<>();
  private final Map<Integer, String> calls = new ConcurrentHashMap<>();
  private int taken;

  PlayedMeeting(int size) {
    this.size = size;
  }

  void bring(int rank, String call, byte[] data) {
    calls.put(rank, call);
    brought.put(rank, data);
  }

  /**
   * Returns whether all ranks made the same call; if they did not, none ever returns, as in real
   * NCCL.
   */
  boolean isComplete() {
    return brought.size() == size && Set.copyOf(calls.values()).size() == 1;
  }

  /** Returns the inputs in rank order, once to each rank; discards them after the last one. */
  synchronized List<byte[]> take() {
    List<byte[]> all = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      all.add(brought.get(r));
    }
    taken++;
    if (taken == size) {
      brought.clear();
    }
    return all;
  }
}
