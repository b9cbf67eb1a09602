package dev.tutti.gloo;

import java.lang.System.Logger.Level;
import java.util.List;

/** Recognizes failures whose reason got lost because a rank stood still. */
public final class Stalls {
  /*
   * Ranks tell each other why they fail, and ask each other where they stand, but wait only a
   * second or so for it. On a busy machine, a thread may stand still for longer. A rank then blames
   * itself, or one that did not answer, or knows only that another one has left. A test of what
   * ranks say of a failure proves nothing in such a run.
   */
  private static final System.Logger LOG = System.getLogger(Stalls.class.getName());

  private static final List<String> TEXTS =
      List.of(
          "was paused until now",
          "does not answer",
          "did not report a call in time",
          "gave up the group");

  private Stalls() {}

  /**
   * Tells whether a failure says that a rank stood still.
   *
   * @param failure the exception that a rank has thrown, or null
   */
  public static boolean show(Throwable failure) {
    String text = String.valueOf(failure);
    boolean stalled = TEXTS.stream().anyMatch(text::contains);
    if (stalled) {
      LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", text);
    }
    return stalled;
  }
}
