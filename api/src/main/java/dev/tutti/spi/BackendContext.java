package dev.tutti.spi;

import dev.tutti.Device;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/** A description of the group that a backend serves. */
public final class BackendContext {
  /** How long closing a group, and its backends, may take. */
  public static final Setting<Duration> CLOSE_TIMEOUT =
      Setting.duration(
          "TUTTI_CLOSE_TIMEOUT",
          Duration.ofSeconds(5),
          "longest time that close waits for pending operations, for other ranks to read what this"
              + " rank sent and, where it serves the store, for them to leave");

  private final String group;
  private final int rank;
  private final int size;
  private final List<Integer> globalRanks;
  private final String deviceType;
  private final Device device;
  private final Store store;
  private final Duration timeout;
  private final Settings settings;
  private final FailureListener onFailure;
  private final Time time;

  private BackendContext(Builder builder) {
    group = builder.group;
    rank = builder.rank;
    size = builder.size;
    globalRanks = List.copyOf(builder.globalRanks);
    deviceType = builder.deviceType;
    device = builder.device;
    store = builder.store;
    timeout = builder.timeout;
    settings = builder.settings;
    onFailure = builder.onFailure;
    time = builder.time;
  }

  /**
   * Creates a builder of a context, for a test of a backend, or for a provider that wraps another
   * one. By default, the context is on the host, in the group of all ranks, with the settings of
   * the environment and the time of this machine, and failures are reported to no one.
   *
   * @param group the name of the group
   * @param rank this rank
   * @param size the number of ranks
   * @param store the store shared by the group's backends for this kind of device
   * @param timeout the time allowed for set-up, from the call
   */
  public static Builder builder(String group, int rank, int size, Store store, Duration timeout) {
    return new Builder(group, rank, size, store, timeout);
  }

  /** Returns a means for the ranks to exchange information during set-up. */
  public Bootstrap bootstrap() {
    return new Bootstrap(store, "rank " + rank + " of group " + group, rank, size, time);
  }

  /**
   * Returns the time at which set-up must end if it begins now, in terms of the clock of {@link
   * #time()}.
   */
  public long deadlineNanos() {
    return time.deadline(timeout);
  }

  /**
   * Returns this context with other settings, for a provider that wraps another one.
   *
   * @param newSettings the complete new settings
   */
  public BackendContext withSettings(Settings newSettings) {
    return builder(group, rank, size, store, timeout)
        .globalRanks(globalRanks)
        .device(deviceType, device)
        .settings(newSettings)
        .onFailure(onFailure)
        .time(time)
        .build();
  }

  /** Returns the name of the group. */
  public String group() {
    return group;
  }

  /** Returns this rank. */
  public int rank() {
    return rank;
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  /**
   * Returns, for each rank, its rank in the group of all ranks; after that group has changed, a
   * number that its process keeps.
   */
  public List<Integer> globalRanks() {
    return globalRanks;
  }

  /** Returns the kind of device that the backend serves. */
  public String deviceType() {
    return deviceType;
  }

  /** Returns the device that the backend is bound to. */
  public Device device() {
    return device;
  }

  /**
   * Returns the store, which is shared by the group's backends for this kind of device under a
   * prefix of their own, and stays open as long as the backend.
   */
  public Store store() {
    return store;
  }

  /** Returns the time allowed for set-up, from the call. */
  public Duration timeout() {
    return timeout;
  }

  /** Returns all settings. */
  public Settings settings() {
    return settings;
  }

  /** Returns the listener to notify of a failure outside any operation. */
  public FailureListener onFailure() {
    return onFailure;
  }

  /** Returns the clock and waits of the group, for all that the backend waits for. */
  public Time time() {
    return time;
  }

  /**
   * A listener that is notified, from any thread, that the group cannot continue; its method
   * returns at once.
   */
  public interface FailureListener {
    /**
     * Fails the group.
     *
     * @param cause the cause of the failure
     * @param failedRank the rank to blame, or -1 if none is known
     */
    void failed(Throwable cause, int failedRank);
  }

  /** A builder of a context. Not thread-safe. */
  public static final class Builder {
    private final String group;
    private final int rank;
    private final int size;
    private final Store store;
    private final Duration timeout;
    private List<Integer> globalRanks;
    private String deviceType = Device.CPU.type();
    private Device device = Device.CPU;
    private Settings settings = Settings.fromEnvironment();
    private FailureListener onFailure = (cause, failedRank) -> {};
    private Time time = Time.SYSTEM;

    private Builder(String group, int rank, int size, Store store, Duration timeout) {
      this.group = group;
      this.rank = rank;
      this.size = size;
      this.store = store;
      this.timeout = timeout;
      this.globalRanks = IntStream.range(0, size).boxed().toList();
    }

    /**
     * Sets the ranks in the group of all ranks.
     *
     * @param globalRanks for each rank, its rank in the group of all ranks
     * @return this builder
     */
    public Builder globalRanks(List<Integer> globalRanks) {
      this.globalRanks = globalRanks;
      return this;
    }

    /**
     * Sets the device.
     *
     * @param deviceType the kind of device that the backend serves
     * @param device the device that the backend is bound to
     * @return this builder
     */
    public Builder device(String deviceType, Device device) {
      this.deviceType = deviceType;
      this.device = device;
      return this;
    }

    /**
     * Sets the settings.
     *
     * @param settings the complete settings
     * @return this builder
     */
    public Builder settings(Settings settings) {
      this.settings = settings;
      return this;
    }

    /**
     * Sets the listener to failures.
     *
     * @param onFailure the listener to notify of a failure outside any operation
     * @return this builder
     */
    public Builder onFailure(FailureListener onFailure) {
      this.onFailure = onFailure;
      return this;
    }

    /**
     * Sets the clock and waits of the group.
     *
     * @param time the time, by default that of this machine
     * @return this builder
     */
    public Builder time(Time time) {
      this.time = time;
      return this;
    }

    /** Creates the context. */
    public BackendContext build() {
      return new BackendContext(this);
    }
  }
}
