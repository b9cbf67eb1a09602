package dev.tutti.aeron.driver;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.SteadyClock;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.CncFileDescriptor;
import io.aeron.CommonContext;
import io.aeron.RethrowingErrorHandler;
import io.aeron.driver.Configuration;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.TimeoutException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.MappedByteBuffer;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.agrona.BufferUtil;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.EpochClock;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.SystemEpochClock;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.ManyToOneRingBuffer;
import org.agrona.concurrent.status.CountersReader;
import org.jspecify.annotations.Nullable;

/**
 * A media driver in this process, on one thread and in its own folder; or one that runs elsewhere.
 */
public final class EmbeddedDriver implements AutoCloseable {
  /** The setting that selects the media driver. */
  public static final String SETTING = "TUTTI_AERON_DRIVER";

  static final int IPC_MTU_BYTES = 4096;

  /** The reason to report when a client of a driver ends by itself. */
  public static final String ENDED_ITSELF =
      "this process or the media driver stalled for too long, or the driver ended";

  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final long LONGEST_SILENCE_MILLIS = 10_000;
  private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int COUNTER_BYTES = 1 << 20;
  private static final int LOSS_BYTES = 1 << 20;

  private final DriverDirectory directory;
  private final @Nullable MediaDriver driver;
  private final String path;
  private final DriverIdling idling;

  private EmbeddedDriver(
      DriverDirectory directory, @Nullable MediaDriver driver, String path, DriverIdling idling) {
    this.directory = directory;
    this.driver = driver;
    this.path = path;
    this.idling = idling;
  }

  /**
   * Starts a driver of short terms, or finds a running one.
   *
   * @param parent where the driver's folder is created
   * @param running the folder of the running driver, or empty for a new one
   * @param timing the driver's times
   * @param sessions the number of sessions for which there must be room
   * @throws StoreException if the driver cannot run here
   */
  public static EmbeddedDriver start(Path parent, String running, Timing timing, int sessions) {
    return start(parent, running, timing, sessions, LimitedPort.SHORT_TERMS);
  }

  /**
   * Starts a driver, or finds a running one.
   *
   * @param parent where the driver's folder is created
   * @param running the folder of the running driver, or empty for a new one
   * @param timing the driver's times
   * @param sessions the number of sessions for which there must be room
   * @param limits the limits of what others can make the driver allocate
   * @throws StoreException if the driver cannot run here
   */
  public static EmbeddedDriver start(
      Path parent, String running, Timing timing, int sessions, StreamLimits limits) {
    DriverIdling idling = new DriverIdling();
    if (!running.isEmpty()) {
      requireRunning(running);
      return new EmbeddedDriver(DriverDirectory.create(parent, 0), null, running, idling);
    }
    DriverDirectory directory =
        DriverDirectory.create(
            parent, DriverDirectory.DRIVER_BYTES + sessions * DriverDirectory.SESSION_BYTES);
    try {
      MediaDriver driver = MediaDriver.launch(context(directory, timing, idling, limits));
      return new EmbeddedDriver(directory, driver, directory.driver(), idling);
    } catch (RuntimeException e) {
      directory.close();
      throw new StoreException("cannot start a media driver in " + parent + ": " + e, e);
    } catch (Error e) {
      directory.close();
      throw e;
    }
  }

  private static void requireRunning(String driver) {
    if (!runs(driver)) {
      throw new StoreException(
          "no media driver is running in %s; start one, or unset %s to use one in this process"
              .formatted(driver, SETTING));
    }
  }

  /**
   * Returns whether a driver runs.
   *
   * @param driver the driver's folder
   * @throws StoreException if the driver is of another version
   */
  public static boolean runs(String driver) {
    MappedByteBuffer mapped = null;
    try {
      mapped =
          new CommonContext()
              .aeronDirectoryName(driver)
              .conclude()
              .mapExistingCncFile(line -> LOG.log(Level.DEBUG, line));
      return mapped != null && isAlive(mapped, clock(driver));
    } catch (TimeoutException | IllegalStateException e) {
      LOG.log(Level.DEBUG, "a media driver is starting, or is gone", e);
      return false;
    } catch (AeronException e) {
      throw unusable(driver, e);
    } finally {
      BufferUtil.free(mapped);
    }
  }

  private static boolean isAlive(MappedByteBuffer mapped, EpochClock clock) {
    UnsafeBuffer head = CncFileDescriptor.createMetaDataBuffer(mapped);
    int version = head.getIntVolatile(CncFileDescriptor.cncVersionOffset(0));
    if (version == 0 || !CncFileDescriptor.isCncFileLengthSufficient(head, mapped.capacity())) {
      return false;
    }
    CncFileDescriptor.checkVersion(version);
    var commands = new ManyToOneRingBuffer(CncFileDescriptor.createToDriverBuffer(mapped, head));
    return clock.time() - commands.consumerHeartbeatTime() <= LONGEST_SILENCE_MILLIS;
  }

  /** Returns the clock of a driver, with which its clients must agree. */
  public static EpochClock clock(String driver) {
    return DriverDirectory.isDriver(Path.of(driver)) ? SteadyClock.HOST : SystemEpochClock.INSTANCE;
  }

  private static StoreException unusable(String driver, AeronException e) {
    return new StoreException("the media driver in %s cannot be used: %s".formatted(driver, e), e);
  }

  private static MediaDriver.Context context(
      DriverDirectory directory, Timing timing, IdleStrategy idling, StreamLimits limits) {
    long liveness = timing.livenessNanos();
    MediaDriver.Context context = new MediaDriver.Context();
    if (System.getProperty(Configuration.RECEIVE_CHANNEL_ENDPOINT_SUPPLIER_PROP_NAME) == null) {
      context.receiveChannelEndpointSupplier(limits.endpoints());
    }
    return context
        .aeronDirectoryName(directory.driver())
        .epochClock(SteadyClock.HOST)
        .streamSessionLimit(limits.sessions())
        .dirDeleteOnStart(true)
        .dirDeleteOnShutdown(true)
        .warnIfDirectoryExists(false)
        .threadingMode(ThreadingMode.SHARED)
        .sharedThreadFactory(task -> daemon("tutti-md", task))
        .sharedIdleStrategy(idling)
        .asyncExecutorEnabled(false) // its thread would poll every millisecond
        .ipcTermBufferLength(Channels.TERM_BYTES)
        .publicationTermBufferLength(Channels.TERM_BYTES)
        .initialWindowLength(Channels.TERM_BYTES / 2)
        .ipcMtuLength(IPC_MTU_BYTES)
        .termBufferSparseFile(false) // on a full file system, touching a hole is fatal
        .performStorageChecks(true)
        .lowStorageWarningThreshold(0)
        .counterValuesBufferLength(COUNTER_BYTES)
        .lossReportBufferLength(LOSS_BYTES)
        .clientLivenessTimeoutNs(liveness)
        .publicationUnblockTimeoutNs(timing.unblockNanos())
        .publicationConnectionTimeoutNs(liveness)
        .imageLivenessTimeoutNs(liveness)
        .publicationLingerTimeoutNs(TimeUnit.SECONDS.toNanos(1))
        .errorHandler(logging());
  }

  /**
   * Connects to a driver as a client.
   *
   * @throws StoreException if the driver is of another version, or its files cannot be read
   * @throws TimeoutException if the driver is not running
   */
  public static Aeron connect(String driver, Timing timing) {
    Aeron.Context context =
        new Aeron.Context()
            .aeronDirectoryName(driver)
            .epochClock(clock(driver))
            .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(timing.livenessNanos()))
            .threadFactory(task -> daemon("tutti-ac", task))
            .errorHandler(logging())
            .subscriberErrorHandler(RethrowingErrorHandler.INSTANCE);
    try {
      return Aeron.connect(context);
    } catch (TimeoutException e) {
      throw e;
    } catch (AeronException e) {
      throw unusable(driver, e);
    }
  }

  /**
   * Runs a task when a client of a driver ends by itself, as it does after a long pause.
   *
   * @param aeron the client
   * @param closed returns whether the client's owner is closing it
   * @param task the task, which runs on a thread of the client and must not wait
   * @throws io.aeron.exceptions.AeronException if the client has already ended
   */
  public static void whenEnded(Aeron aeron, BooleanSupplier closed, Runnable task) {
    aeron.addCloseHandler(
        () -> {
          if (!closed.getAsBoolean()) {
            // Other threads may be accessing its memory at this moment.
            aeron.context().closeLingerDurationNs(LINGER_NANOS);
            task.run();
          }
        });
  }

  private static ErrorHandler logging() {
    return problem -> LOG.log(Level.DEBUG, "media driver or its client", problem);
  }

  /**
   * Keeps the driver's thread awake from now on; useful only for UDP, since messages in shared
   * memory do not pass through it.
   */
  public void spin() {
    idling.spin = true;
  }

  public static Thread daemon(String name, Runnable task) {
    return Thread.ofPlatform().name(name).daemon().unstarted(task);
  }

  public DriverDirectory directory() {
    return directory;
  }

  public String path() {
    return path;
  }

  /** Returns the driver's counters, or empty if it runs elsewhere; they end with the driver. */
  public Optional<CountersReader> counters() {
    return Optional.ofNullable(driver).map(own -> own.context().countersManager());
  }

  /**
   * Throws if there is no room for one more session; a driver in another process checks its own
   * room.
   *
   * @throws StoreException describing what to do
   */
  public void requireRoom() throws IOException {
    if (driver != null) {
      directory.requireRoom();
    }
  }

  /** How the driver's thread idles. */
  private static final class DriverIdling implements IdleStrategy {
    private final IdleStrategy sleeping =
        new BackoffIdleStrategy(
            0, 20, TimeUnit.MICROSECONDS.toNanos(50), TimeUnit.MILLISECONDS.toNanos(1));
    volatile boolean spin;

    @Override
    public void idle(int workCount) {
      if (!spin) {
        sleeping.idle(workCount);
      } else if (workCount == 0) {
        Thread.onSpinWait();
      }
    }

    @Override
    public void idle() {
      idle(0);
    }

    @Override
    public void reset() {
      sleeping.reset();
    }
  }

  @Override
  public void close() {
    try {
      if (driver != null) {
        driver.close();
      }
    } finally {
      directory.close();
    }
  }
}
