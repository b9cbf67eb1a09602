package dev.tutti;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reports that the ranks of a job could not meet: a missing setting, a bad URL or a late rank. */
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
   * @param cause the failure below, if there is one
   */
  public RendezvousException(String message, @Nullable Throwable cause) {
    this(message, cause, List.of());
  }

  /**
   * Creates an exception that knows who did not come.
   *
   * @param message what failed, where, and what was expected
   * @param cause the failure below, if there is one
   * @param missing the ranks that did not come, or went again at once
   */
  public RendezvousException(String message, @Nullable Throwable cause, List<Integer> missing) {
    super(message, cause);
    this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Returns the ranks known not to have come, or to have gone again while others joined; empty
   * where none is known.
   */
  public List<Integer> missingRanks() {
    return Arrays.stream(missing).boxed().toList();
  }
}
