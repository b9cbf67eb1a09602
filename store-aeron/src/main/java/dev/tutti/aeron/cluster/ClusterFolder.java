package dev.tutti.aeron.cluster;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.LogNames;
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
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** The folder in which a member of a cluster keeps its log and its snapshots. */
public final class ClusterFolder implements AutoCloseable {
  /*
   * The process that uses the folder holds a lock on a file in it, which the kernel releases when
   * that process ends, in whatever way. Aeron instead marks its folders with timestamps, which
   * would keep a killed member from restarting for ten seconds. The holder of the lock may
   * therefore delete these marks.
   */
  private static final Logger LOG = System.getLogger(LogNames.CLUSTER_SERVER);
  private static final String LOCK = "lock";
  private static final String ALIVE = "alive";
  private static final String MEMBERS = "members";
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
   * @throws StoreException if another process uses the folder, or it belongs to another member
   */
  public static ClusterFolder open(Path path, String member) {
    FileChannel lockFile = null;
    try {
      Files.createDirectories(path);
      lockFile =
          FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      if (!isFree(lockFile)) {
        throw new StoreException(path + " is in use by another member of a store cluster");
      }
      ClusterFolder folder = new ClusterFolder(path, lockFile);
      folder.requireOwner(member);
      for (String mark : MARKS) {
        Files.deleteIfExists(path.resolve(mark));
      }
      return folder;
    } catch (IOException e) {
      close(lockFile);
      throw new StoreException("cannot use %s for a store cluster: %s".formatted(path, e), e);
    } catch (RuntimeException e) {
      close(lockFile);
      throw e;
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
      Instant last = Files.getLastModifiedTime(path.resolve(ALIVE)).toInstant();
      deadline -= Math.clamp(Duration.between(last, Instant.now()).toNanos(), 0, nanos);
    } catch (NoSuchFileException e) {
      return;
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "cannot tell when a member ended", e);
    }
    while (deadline - System.nanoTime() > 0) {
      LockSupport.parkNanos(deadline - System.nanoTime());
      if (Thread.currentThread().isInterrupted()) {
        throw new StoreException(
            "interrupted while starting a member of a store cluster", new InterruptedException());
      }
    }
  }

  /** Records that this process is alive. */
  public void touch() {
    try {
      Files.write(path.resolve(ALIVE), new byte[0]);
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
