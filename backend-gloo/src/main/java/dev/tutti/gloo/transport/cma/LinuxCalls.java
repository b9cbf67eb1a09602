package dev.tutti.gloo.transport.cma;

/** Tells whether functions of Linux may be called. */
public final class LinuxCalls {
  private static final boolean LINUX = System.getProperty("os.name", "").equals("Linux");
  private static final boolean ALLOWED =
      LINUX && LinuxCalls.class.getModule().isNativeAccessEnabled();

  private LinuxCalls() {}

  /** Tells whether this is Linux, and whoever started the JVM let this module call native code. */
  public static boolean areAllowed() {
    return ALLOWED;
  }

  /** Tells whether this is Linux, and only the JVM's flags forbid them. */
  public static boolean areForbidden() {
    return LINUX && !ALLOWED;
  }
}
