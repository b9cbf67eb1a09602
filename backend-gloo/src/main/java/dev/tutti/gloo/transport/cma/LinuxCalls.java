package dev.tutti.gloo.transport.cma;

/** Tells whether Linux functions may be called. */
public final class LinuxCalls {
  private static final boolean LINUX = System.getProperty("os.name", "").equals("Linux");
  private static final boolean ALLOWED =
      LINUX && LinuxCalls.class.getModule().isNativeAccessEnabled();

  private LinuxCalls() {}

  /** Tells whether this is Linux, and the JVM was started with native access for this module. */
  public static boolean areAllowed() {
    return ALLOWED;
  }

  /** Tells whether this is Linux, and only the JVM's flags forbid such calls. */
  public static boolean areForbidden() {
    return LINUX && !ALLOWED;
  }
}
