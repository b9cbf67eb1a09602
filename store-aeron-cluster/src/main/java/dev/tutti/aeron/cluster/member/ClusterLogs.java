package dev.tutti.aeron.cluster.member;

/** The names of the loggers, after the public classes. */
public final class ClusterLogs {
  public static final String CLIENT = "dev.tutti.aeron.cluster.AeronClusterStore";
  public static final String SERVER = "dev.tutti.aeron.cluster.AeronClusterServer";

  private ClusterLogs() {}
}
