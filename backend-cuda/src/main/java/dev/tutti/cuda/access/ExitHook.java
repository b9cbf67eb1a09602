package dev.tutti.cuda.access;

/** A static method that registers what runs when the JVM shuts down. */
public final class ExitHook {
  private ExitHook() {}

  /**
   * Registers an action. Its thread keeps nothing of the caller's alive: neither class loader nor
   * inherited thread-locals.
   *
   * @return false if the JVM is shutting down already, so the action never runs
   */
  public static boolean add(Runnable action) {
    Thread hook =
        Thread.ofPlatform()
            .name("tutti-exit")
            .inheritInheritableThreadLocals(false)
            .unstarted(action);
    hook.setContextClassLoader(null);
    try {
      Runtime.getRuntime().addShutdownHook(hook);
      return true;
    } catch (IllegalStateException e) {
      return false;
    }
  }
}
