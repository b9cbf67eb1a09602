package dev.tutti;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reports an operation that did not end before its own deadline. */
public class CollectiveTimeoutException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  private final int[] missing;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   */
  public CollectiveTimeoutException(String message, FailureInfo info, @Nullable Throwable cause) {
    this(message, info, cause, List.of());
  }

  /**
   * Creates an exception that knows for whom the operation waited.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   * @param missing the ranks that did not do their part in time
   */
  public CollectiveTimeoutException(
      String message, FailureInfo info, @Nullable Throwable cause, List<Integer> missing) {
    super(message, info, cause);
    this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Returns the ranks known not to have done their part in time, as those that did not come to a
   * monitored barrier on rank 0; empty where none is known. Which other ranks are missing may be in
   * the message.
   */
  public List<Integer> missingRanks() {
    return Arrays.stream(missing).boxed().toList();
  }
}
