package dev.tutti.aeron.wire;

/** The names of the loggers, after the public classes. */
public final class LogNames {
  public static final String CLIENT = "dev.tutti.aeron.AeronStore";
  public static final String SERVER = "dev.tutti.aeron.AeronStoreServer";

  private LogNames() {}
}
