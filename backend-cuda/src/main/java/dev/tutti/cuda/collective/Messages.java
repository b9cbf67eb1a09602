package dev.tutti.cuda.collective;

import dev.tutti.Capabilities.Feature;
import dev.tutti.spi.Operation;
import java.util.Map;

/** The messages of a rank through NCCL. Thread-safe. */
public interface Messages {
  /** Starts a send. */
  void send(Operation op, int peer, int tag, long address, long bytes);

  /** Starts a receive, also from {@link MessageMatcher#ANY} if that is supported. */
  void receive(Operation op, int peer, int tag, long address, long bytes);

  /** Returns the features that messages lack, with the reasons. */
  default Map<Feature, String> missingFeatures() {
    return Map.of();
  }

  /** Tells whether some ranks run PyTorch, or may do so because they were not asked. */
  default boolean mayMeetPytorch() {
    return false;
  }

  /** Begins to collect the messages that this thread starts. */
  default void beginBatch() {}

  /** Starts, as one, the messages that this thread has collected since {@link #beginBatch}. */
  default void endBatch() {}

  /** Tells whether a send or receive waits for its other side. */
  boolean isWaiting();

  /**
   * Fails the messages that wait for a rank that closed its group.
   *
   * @param farewell that rank's farewell
   */
  void leave(int peer, String farewell);

  /** Returns a summary of this closing rank's messages, for its peers. */
  default String farewell() {
    return "";
  }

  /** Fails messages that cannot complete according to NCCL. */
  void look();

  /** Fails messages that cannot complete according to the store. */
  default void lookInStore() {}

  /** Returns what may keep messages past their deadline from completing, or an empty string. */
  default String likelyCause() {
    return "";
  }

  /** Ends running messages without a result; never blocks. */
  void abort(Throwable cause);

  /** Begins to free the resources used only by messages, all at once; nothing may be running. */
  void beginClose();

  /** Frees everything. */
  void close(long deadlineNanos);
}
