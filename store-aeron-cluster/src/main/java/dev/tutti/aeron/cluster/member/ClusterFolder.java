package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.SteadyClock;
import java.io.File;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** The folder in which a member of a cluster keeps its log and its snapshots. */
public final class ClusterFolder implements AutoCloseable {
  /*
   * The process that uses the folder holds a lock on a file in it, which the kernel releases when
   * that process ends, in whatever way. Aeron instead marks its folders with timestamps, which
   * would keep a killed member from restarting for ten seconds. The holder of the lock may
   * therefore delete these marks.
   *
   * Aeron maps files of the folder into memory, and a full disk is fatal to a process that touches
   * such memory. A member therefore does not start without room for all of them.
   */
  private static final Logger LOG = System.getLogger(ClusterLogs.SERVER);
  static final int LOG_TERM_BYTES = 256 * 1024;
  static final int SEGMENT_BYTES = 4 << 20;
  private static final String LOCK = "lock";
  private static final String ALIVE = "alive";
  private static final String MEMBERS = "members";
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Set<PosixFilePermission> OWN = PosixFilePermissions.fromString("rwx------");

  /** The room that a member needs to start: marks, catalog and one part of the log. */
  static final long LEAST_BYTES = 16L << 20;

  private static final List<String> MARKS =
      List.of(
          "archive/archive-mark.dat",
          "cluster/cluster-mark.dat",
          "cluster/cluster-mark-service-0.dat");

  private final Path path;
  private final FileChannel lockFile;

  private ClusterFolder(Path path, FileChannel lockFile) {
    this.path = path;
    this.lockFile = lockFile;
  }

  /**
   * Opens or creates a folder.
   *
   * @param path the folder
   * @param member the member that owns the folder: its number and all members
   * @throws StoreException if another process uses the folder, it belongs to another member, or its
   *     disk is full
   */
  public static ClusterFolder open(Path path, String member) {
    FileChannel lockFile = null;
    try {
      boolean isNew = !Files.exists(path);
      Files.createDirectories(path);
      if (isNew) {
        hide(path);
      }
      lockFile =
          FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      if (!isFree(lockFile)) {
        throw new StoreException(path + " is in use by another member of a store cluster");
      }
      ClusterFolder folder = new ClusterFolder(path, lockFile);
      folder.requireOwner(member);
      return folder;
    } catch (IOException e) {
      close(lockFile);
      throw unusable(path, e);
    } catch (RuntimeException e) {
      close(lockFile);
      throw e;
    }
  }

  private static StoreException unusable(Path path, IOException e) {
    return new StoreException("cannot use %s for a store cluster: %s".formatted(path, e), e);
  }

  /** Lets only this user look into a folder, which holds all keys and values. */
  private static void hide(Path folder) throws IOException {
    PosixFileAttributeView view = Files.getFileAttributeView(folder, PosixFileAttributeView.class);
    if (view != null) {
      view.setPermissions(OWN);
    }
  }

  /**
   * Readies the folder for Aeron, whose former parts have ended.
   *
   * @throws StoreException if the disk is full, or a recording cannot be mended
   */
  public void prepare() {
    try {
      for (String mark : MARKS) {
        Files.deleteIfExists(path.resolve(mark));
      }
      requireRoom();
      for (File part : List.of(archive(), cluster())) {
        Files.createDirectories(part.toPath());
        hide(part.toPath());
      }
      RecordingTails.mend(archive().toPath());
    } catch (IOException e) {
      throw unusable(path, e);
    }
  }

  private void requireRoom() throws IOException {
    long room = Files.getFileStore(path).getUsableSpace();
    if (room < LEAST_BYTES) {
      throw new StoreException(
          String.format(
              Locale.ROOT,
              "disk full: %s has %.1f MiB left, but a member of a store cluster needs %.1f MiB to"
                  + " start; it starts again when there is room",
              path,
              room / (double) (1 << 20),
              LEAST_BYTES / (double) (1 << 20)));
    }
  }

  /** Returns a reason to add to a failure while the disk is full, and otherwise nothing. */
  public String fullness() {
    try {
      return Files.getFileStore(path).getUsableSpace() < LEAST_BYTES / 2
          ? "disk full: " + path + ": "
          : "";
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "cannot read how full a disk is", e);
      return "";
    }
  }

  private static boolean isFree(FileChannel lockFile) throws IOException {
    try {
      return lockFile.tryLock() != null;
    } catch (OverlappingFileLockException e) {
      return false;
    }
  }

  private void requireOwner(String member) throws IOException {
    Path file = path.resolve(MEMBERS);
    if (!Files.exists(file)) {
      Files.writeString(file, member);
    } else if (!Files.readString(file).equals(member)) {
      throw new StoreException(
          "%s belongs to %s, not to %s; the members of a cluster cannot change"
              .formatted(path, Files.readString(file), member));
    }
  }

  /**
   * Waits until the process that used the folder before has been gone for a while.
   *
   * @param nanos the time it must have been gone
   */
  public void awaitSilence(long nanos) {
    long deadline = System.nanoTime() + nanos;
    try {
      String[] last = Files.readString(path.resolve(ALIVE)).split(" ", -1);
      if (last.length == 2 && last[0].equals(boot())) {
        long silent = SteadyClock.HOST.time() - Long.parseLong(last[1]);
        deadline -= Math.clamp(TimeUnit.MILLISECONDS.toNanos(silent), 0, nanos);
      }
    } catch (NoSuchFileException e) {
      return;
    } catch (IOException | NumberFormatException e) {
      LOG.log(Level.DEBUG, "cannot read when a member ended", e);
    }
    while (deadline - System.nanoTime() > 0) {
      LockSupport.parkNanos(deadline - System.nanoTime());
      if (Thread.currentThread().isInterrupted()) {
        throw new StoreException(
            "interrupted while starting a member of a store cluster", new InterruptedException());
      }
    }
  }

  /**
   * Returns what distinguishes this start of the host from others, between which its clock begins
   * anew.
   */
  private static String boot() throws IOException {
    return Files.isReadable(BOOT) ? Files.readString(BOOT).strip() : "";
  }

  /** Records that this process is alive. */
  public void touch() {
    try {
      Files.writeString(path.resolve(ALIVE), boot() + " " + SteadyClock.HOST.time());
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "cannot record that a member is alive", e);
    }
  }

  File archive() {
    return path.resolve("archive").toFile();
  }

  File cluster() {
    return path.resolve("cluster").toFile();
  }

  private static void close(@Nullable FileChannel lockFile) {
    try {
      if (lockFile != null) {
        lockFile.close();
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "cannot close a lock file", e);
    }
  }

  @Override
  public void close() {
    close(lockFile);
  }
}
