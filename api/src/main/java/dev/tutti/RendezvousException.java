package dev.tutti;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when the ranks of a job cannot meet, for example because of a missing setting, a bad URL
 * or a late rank.
 */
public class RendezvousException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int[] missing;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public RendezvousException(String message) {
    this(message, null);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public RendezvousException(String message, @Nullable Throwable cause) {
    this(message, cause, List.of());
  }

  /**
   * Creates an exception that names the ranks that did not come.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   * @param missing the ranks that did not come, or left again at once
   */
  public RendezvousException(String message, @Nullable Throwable cause, List<Integer> missing) {
    super(message, cause);
    this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Returns the ranks known not to have come, or to have left again while others joined; empty if
   * none is known.
   */
  public List<Integer> missingRanks() {
    return Arrays.stream(missing).boxed().toList();
  }
}
