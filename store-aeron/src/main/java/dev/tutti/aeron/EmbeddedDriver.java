package dev.tutti.aeron;

import dev.tutti.StoreException;
import io.aeron.Aeron;
import io.aeron.RethrowingErrorHandler;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;

/** Runs a media driver in this process, on one thread, in a folder of its own. */
final class EmbeddedDriver implements AutoCloseable {
  static final int TERM_BYTES = 64 * 1024;
  static final int IPC_MTU_BYTES = 4096;

  private static final Logger LOG = System.getLogger(AeronStore.class.getName());
  private static final int COUNTER_BYTES = 1 << 20;
  private static final int LOSS_BYTES = 1 << 20;

  /** Is what a driver takes for itself: its least counters, errors and commands. */
  static final long DRIVER_BYTES = 12_400L << 10;

  /** Is what a session takes: two streams of three terms, and a page for each. */
  static final long SESSION_BYTES = 2 * (3L * TERM_BYTES + 4096);

  private final DriverDirectory directory;
  private final MediaDriver driver;
  private final DriverIdling idling;

  private EmbeddedDriver(DriverDirectory directory, MediaDriver driver, DriverIdling idling) {
    this.directory = directory;
    this.driver = driver;
    this.idling = idling;
  }

  /**
   * Starts a driver.
   *
   * @param parent where its folder is made
   * @param timing all its times
   * @param sessions for how many there must be room
   * @throws StoreException if it cannot run here
   */
  static EmbeddedDriver start(Path parent, Timing timing, int sessions) {
    DriverDirectory directory =
        DriverDirectory.create(parent, DRIVER_BYTES + sessions * SESSION_BYTES);
    try {
      DriverIdling idling = new DriverIdling();
      MediaDriver driver = MediaDriver.launch(context(directory, timing, idling));
      return new EmbeddedDriver(directory, driver, idling);
    } catch (RuntimeException e) {
      directory.close();
      throw new StoreException("cannot start a media driver in " + parent + ": " + e, e);
    }
  }

  private static MediaDriver.Context context(
      DriverDirectory directory, Timing timing, IdleStrategy idling) {
    long liveness = timing.livenessNanos();
    return new MediaDriver.Context()
        .aeronDirectoryName(directory.driver())
        .dirDeleteOnStart(true)
        .dirDeleteOnShutdown(true)
        .warnIfDirectoryExists(false)
        .threadingMode(ThreadingMode.SHARED)
        .sharedThreadFactory(task -> daemon("tutti-md", task))
        .sharedIdleStrategy(idling)
        .ipcTermBufferLength(TERM_BYTES)
        .publicationTermBufferLength(TERM_BYTES)
        .initialWindowLength(TERM_BYTES / 2)
        .ipcMtuLength(IPC_MTU_BYTES)
        .termBufferSparseFile(false) // a full file system would kill who touches a hole
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

  /** Connects to a driver as a client. */
  static Aeron connect(String driver, Timing timing) {
    Aeron.Context context =
        new Aeron.Context()
            .aeronDirectoryName(driver)
            .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(timing.livenessNanos()))
            .threadFactory(task -> daemon("tutti-ac", task))
            .errorHandler(logging())
            .subscriberErrorHandler(RethrowingErrorHandler.INSTANCE);
    return Aeron.connect(context);
  }

  private static ErrorHandler logging() {
    return problem -> LOG.log(Level.DEBUG, "media driver or its client", problem);
  }

  /** Keeps its thread awake from now on; only for UDP, messages in shared memory do not pass it. */
  void spin() {
    idling.spin = true;
  }

  static Thread daemon(String name, Runnable task) {
    return Thread.ofPlatform().name(name).daemon().unstarted(task);
  }

  DriverDirectory directory() {
    return directory;
  }

  String path() {
    return directory.driver();
  }

  /** Says what the driver's thread does without work. */
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
      driver.close();
    } finally {
      directory.close();
    }
  }
}
