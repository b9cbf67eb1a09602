package dev.tutti;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when an operation does not end before its own deadline. */
public class CollectiveTimeoutException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  private final int[] missing;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   */
  public CollectiveTimeoutException(String message, FailureInfo info, @Nullable Throwable cause) {
    this(message, info, cause, List.of());
  }

  /**
   * Creates an exception that names the ranks that the operation waited for.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   * @param missing the ranks that did not do their part in time
   */
  public CollectiveTimeoutException(
      String message, FailureInfo info, @Nullable Throwable cause, List<Integer> missing) {
    super(message, info, cause);
    this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Returns the ranks known not to have done their part in time, or an empty list if none is known.
   * On rank 0, for example, these are the ranks that did not reach a monitored barrier. The message
   * may say which other ranks are missing.
   */
  public List<Integer> missingRanks() {
    return Arrays.stream(missing).boxed().toList();
  }
}
