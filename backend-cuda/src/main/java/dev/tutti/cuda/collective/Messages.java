package dev.tutti.cuda.collective;

import dev.tutti.Capabilities.Feature;
import dev.tutti.spi.Operation;
import java.util.Map;

/** Moves the messages of a rank by NCCL. Any thread. */
public interface Messages {
  /** Starts a send. */
  void send(Operation op, int peer, int tag, long address, long bytes);

  /** Starts a receive, of {@link MessageMatcher#ANY} too where that can be. */
  void receive(Operation op, int peer, int tag, long address, long bytes);

  /** Tells what messages have to do without, with the reason. */
  default Map<Feature, String> missingFeatures() {
    return Map.of();
  }

  /** Tells whether some ranks are of PyTorch, or may be, as nobody was asked. */
  default boolean mayMeetPytorch() {
    return false;
  }

  /** Begins to collect what this thread starts. */
  default void beginBatch() {}

  /** Starts what this thread has started since {@link #beginBatch}, as one. */
  default void endBatch() {}

  /** Tells whether a send or receive waits for its other side. */
  boolean isWaiting();

  /**
   * Fails what waits for a rank that closed its group.
   *
   * @param farewell that rank's
   */
  void leave(int peer, String farewell);

  /** Says what messages this rank had, which closes, for its peers. */
  default String farewell() {
    return "";
  }

  /** Fails messages that cannot end by what NCCL says. */
  void look();

  /** Fails messages that cannot end by what the store says. */
  default void lookInStore() {}

  /** Says what may keep messages from ending whose time is over; or is empty. */
  default String likelyCause() {
    return "";
  }

  /** Ends what runs, without a result; never blocks. */
  void abort(Throwable cause);

  /** Begins to free what messages alone have, all at once; nothing may run. */
  void beginClose();

  /** Frees everything. */
  void close(long deadlineNanos);
}
