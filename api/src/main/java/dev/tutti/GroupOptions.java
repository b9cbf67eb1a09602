package dev.tutti;

import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.StringJoiner;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The options for joining a job. Immutable; each {@code with} method returns a changed copy.
 *
 * <p>Options that the environment provides need not be set. Options that the program sets take
 * precedence:
 *
 * {@snippet file="GroupSnippetsTest.java" region="options"}
 *
 * <p>Options that were serialized become equal ones, with {@link Settings} as those are read. A
 * store, a backend provider and a time belong to a process, so options with one of them cannot be
 * serialized, and cause a {@link NotSerializableException}; give a URL and the backend's name
 * instead.
 */
public final class GroupOptions implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The options that take everything from the environment of this process. */
  public static final GroupOptions DEFAULT = new GroupOptions(new Fields());

  private final Fields fields;

  private GroupOptions(Fields fields) {
    this.fields = fields;
  }

  private GroupOptions with(Consumer<Fields> change) {
    Fields copy = fields.copy();
    change.accept(copy);
    return new GroupOptions(copy);
  }

  /**
   * Sets the name of the backend, or several by device type as in {@code cpu:gloo,cuda:cuda}.
   * Without it, the setting {@code TUTTI_BACKEND} applies; if that is not set either, the only
   * usable backend on the class path is taken.
   *
   * @param backend the name or names
   */
  public GroupOptions withBackend(String backend) {
    return with(copy -> copy.backend = backend);
  }

  /**
   * Sets the backend directly instead of looking one up by name.
   *
   * @param provider the provider that creates the backend
   */
  public GroupOptions withProvider(BackendProvider provider) {
    return with(copy -> copy.provider = provider);
  }

  /**
   * Sets where the ranks meet: {@code env://}, {@code tcp://host:port?rank=0&world_size=2}, {@code
   * file:///path?rank=0&world_size=2}, or a scheme that a store provider adds. Without rank and
   * world_size, they are those of RANK and WORLD_SIZE. The default is {@code env://}.
   *
   * @param url the URL of the meeting place
   */
  public GroupOptions withInitMethod(String url) {
    return with(copy -> copy.initMethod = url);
  }

  /**
   * Sets the store through which the ranks meet. This excludes {@link #withInitMethod}, and
   * requires the rank and the size to be set. The caller closes the store after the group.
   *
   * @param store a store shared by the ranks
   */
  public GroupOptions withStore(Store store) {
    return with(copy -> copy.store = store);
  }

  /**
   * Sets the rank of this process.
   *
   * @param rank the rank, starting at 0
   */
  public GroupOptions withRank(int rank) {
    return with(copy -> copy.rank = rank);
  }

  /**
   * Sets the number of ranks.
   *
   * @param size the number of ranks, at least 1
   */
  public GroupOptions withSize(int size) {
    return with(copy -> copy.size = size);
  }

  /**
   * Sets the deadline of set-up and of operations that have none of their own.
   *
   * @param timeout the deadline; must be positive
   */
  public GroupOptions withTimeout(Duration timeout) {
    return with(copy -> copy.timeout = timeout);
  }

  /**
   * Binds the group to a device.
   *
   * @param device the device that holds the group's tensors
   */
  public GroupOptions withDevice(Device device) {
    return with(copy -> copy.device = device);
  }

  /**
   * Sets the settings, replacing the environment of this process.
   *
   * @param settings the names and values
   */
  public GroupOptions withSettings(Settings settings) {
    return with(copy -> copy.settings = settings);
  }

  /**
   * Sets one setting. All others stay those of these options, by default those of the environment
   * of this process.
   *
   * @param name the setting's name
   * @param value the value's text
   */
  public GroupOptions withSetting(String name, String value) {
    return withSettings(settings().with(name, value));
  }

  /**
   * Sets the clock and waits of the job, for a simulation. The program makes its other calls as
   * usual; only the group, its backend and a store that the group opens use it.
   *
   * @param time the time, by default that of this machine
   */
  public GroupOptions withTime(Time time) {
    return with(copy -> copy.time = time);
  }

  /** Returns the name or names of the backend. */
  public Optional<String> backend() {
    return Optional.ofNullable(fields.backend);
  }

  /** Returns the backend provider, if one was set. */
  public Optional<BackendProvider> provider() {
    return Optional.ofNullable(fields.provider);
  }

  /** Returns the URL at which the ranks meet. */
  public Optional<String> initMethod() {
    return Optional.ofNullable(fields.initMethod);
  }

  /** Returns the store, if one was set. */
  public Optional<Store> store() {
    return Optional.ofNullable(fields.store);
  }

  /** Returns the rank. */
  public OptionalInt rank() {
    return optional(fields.rank);
  }

  /** Returns the number of ranks. */
  public OptionalInt size() {
    return optional(fields.size);
  }

  /** Returns the deadline. */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(fields.timeout);
  }

  /** Returns the device. */
  public Optional<Device> device() {
    return Optional.ofNullable(fields.device);
  }

  /** Returns the settings, by default those of the environment of this process. */
  public Settings settings() {
    Settings settings = fields.settings;
    return settings == null ? Settings.fromEnvironment() : settings;
  }

  /** Returns the clock and waits of the job, by default those of this machine. */
  public Time time() {
    return fields.time == null ? Time.SYSTEM : fields.time;
  }

  /** Returns whether other options are equal to these, with the same provider, store and time. */
  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof GroupOptions options && fields.all().equals(options.fields.all());
  }

  @Override
  public int hashCode() {
    return fields.all().hashCode();
  }

  /**
   * Describes the options that were set. Of the settings, which may hold the token, it says only
   * that they are set.
   */
  @Override
  public String toString() {
    StringJoiner text = new StringJoiner(", ", "GroupOptions[", "]");
    backend().ifPresent(backend -> text.add("backend " + backend));
    provider().ifPresent(provider -> text.add("provider " + provider.name()));
    initMethod().ifPresent(url -> text.add("init method " + url));
    store().ifPresent(store -> text.add("store " + store.getClass().getSimpleName()));
    rank().ifPresent(rank -> text.add("rank " + rank));
    size().ifPresent(size -> text.add("size " + size));
    timeout().ifPresent(timeout -> text.add("timeout " + Printable.time(timeout)));
    device().ifPresent(device -> text.add("device " + device));
    if (fields.settings != null) {
      text.add("settings given");
    }
    if (fields.time != null) {
      text.add("time " + fields.time.getClass().getSimpleName());
    }
    return text.toString();
  }

  private static OptionalInt optional(@Nullable Integer value) {
    return value == null ? OptionalInt.empty() : OptionalInt.of(value);
  }

  private static final class Fields implements Cloneable, Serializable {
    private static final long serialVersionUID = 1L;

    @Nullable String backend;
    transient @Nullable BackendProvider provider;
    @Nullable String initMethod;
    transient @Nullable Store store;
    @Nullable Integer rank;
    @Nullable Integer size;
    @Nullable Duration timeout;
    @Nullable Device device;
    @Nullable Settings settings;
    transient @Nullable Time time;

    private void writeObject(ObjectOutputStream out) throws IOException {
      String own =
          store != null
              ? "a store, which belongs to this process; give the URL of one (withInitMethod)"
              : provider != null
                  ? "a backend provider, which belongs to this process; give its name (withBackend)"
                  : time != null ? "a time, which belongs to this process" : "";
      if (!own.isEmpty()) {
        throw new NotSerializableException("group options with " + own);
      }
      out.defaultWriteObject();
    }

    List<@Nullable Object> all() {
      return Arrays.asList(
          backend, provider, initMethod, store, rank, size, timeout, device, settings, time);
    }

    Fields copy() {
      try {
        return (Fields) clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }
}
