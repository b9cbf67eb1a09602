package dev.tutti.gloo.transport;

/** Tells whether functions of Linux may be called. */
public final class LinuxCalls {
  private static final boolean ALLOWED =
      System.getProperty("os.name", "").equals("Linux")
          && LinuxCalls.class.getModule().isNativeAccessEnabled();

  private LinuxCalls() {}

  /** Tells whether this is Linux, and whoever started the JVM let this module call native code. */
  public static boolean areAllowed() {
    return ALLOWED;
  }
}
