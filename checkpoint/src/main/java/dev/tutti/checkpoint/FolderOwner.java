package dev.tutti.checkpoint;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.tutti.ProcessGroup;
import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The right to write to a folder: a lock that rank 0 holds on its file {@code .lock}, which the
 * system releases when the process ends. Also the check that all ranks see one folder.
 */
final class FolderOwner implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(FolderOwner.class.getName());

  private static final int LONGEST = 1000;

  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** The folders that this process has locked, by their real paths. */
  private static final Set<Path> OWNED = ConcurrentHashMap.newKeySet();

  /**
   * The lock of this process.
   *
   * @param folder the real path of the folder
   * @param file the file
   * @param key what distinguishes the file from one that replaces it
   * @param channel holds the lock
   */
  private record Lock(Path folder, Path file, @Nullable Object key, FileChannel channel) {}

  /**
   * How long to wait for a process that holds the lock.
   *
   * @param limit the maximum time
   */
  record Patience(Duration limit, Time time) {
    /** Does not wait. */
    static final Patience NONE = new Patience(Duration.ZERO, Time.SYSTEM);
  }

  /** Another process, or another job of this one, holds the lock. */
  private static final class InUseException extends IOException {
    private static final long serialVersionUID = 1;

    InUseException(Path root, String holder) {
      super(
          "%s is in use by another job (%s); end it, or choose another folder"
              .formatted(root, holder));
    }
  }

  private final @Nullable Lock lock;

  private FolderOwner(@Nullable Lock lock) {
    this.lock = lock;
  }

  static FolderOwner take(
      ProcessGroup group, Executor collectives, Path root, Disk disk, Patience patience) {
    Agreement agreement = new Agreement(group, root, collectives);
    Lock[] lock = new Lock[1];
    String what = "opening the checkpoints in " + root;
    try {
      String token =
          new String(
              agreement.onFirst(
                  what,
                  () -> {
                    createForced(root);
                    lock[0] = lock(root, patience);
                    new CheckpointFolder(disk, root).sweep();
                    return writeToken(root, Agreement.hostName());
                  }),
              StandardCharsets.UTF_8);
      try {
        agreement.onAll(what, () -> requireToken(root, token));
      } finally {
        if (group.rank() == 0) {
          deleteToken(root, token);
        }
      }
      return new FolderOwner(lock[0]);
    } catch (RuntimeException | Error e) {
      new FolderOwner(lock[0]).close();
      throw e;
    }
  }

  /** Creates a folder and those above it, so that a crash of the host does not lose them. */
  private static void createForced(Path folder) throws IOException {
    if (Files.exists(folder, NOFOLLOW_LINKS) && !Files.isDirectory(folder)) {
      throw new IOException(
          folder + " is a file or a link to none, not a folder; choose another folder");
    }
    if (!Files.isDirectory(folder)) {
      Path parent = folder.getParent();
      if (parent != null) {
        createForced(parent);
      }
      Files.createDirectories(folder);
      if (parent != null) {
        new NioDisk().forceFolder(parent);
      }
    }
  }

  private static Lock lock(Path root, Patience patience) throws IOException {
    long deadline = patience.time.deadline(patience.limit);
    for (boolean isFirst = true; ; isFirst = false) {
      try {
        return lock(root);
      } catch (InUseException e) {
        if (deadline - patience.time.nanoTime() <= 0) {
          throw e;
        }
        if (isFirst) {
          LOG.log(
              Level.WARNING, "rank 0 waits for at most {0}: {1}", patience.limit, e.getMessage());
        }
        patience.time.park(root, RETRY_NANOS);
      }
    }
  }

  private static Lock lock(Path root) throws IOException {
    Path real = root.toRealPath();
    // Closing any channel of the file would release the lock that this process holds.
    if (!OWNED.add(real)) {
      throw new InUseException(root, self());
    }
    Path file = root.resolve(".lock");
    try {
      return lockFile(root, real, file);
    } catch (InUseException | RuntimeException e) {
      OWNED.remove(real);
      throw e;
    } catch (IOException e) {
      OWNED.remove(real);
      throw Disk.named(file, e);
    }
  }

  private static @Nullable Object key(Path file) throws IOException {
    return Files.readAttributes(file, BasicFileAttributes.class, NOFOLLOW_LINKS).fileKey();
  }

  private static Lock lockFile(Path root, Path real, Path file) throws IOException {
    // What a link leads to is not overwritten.
    FileChannel channel = FileChannel.open(file, CREATE, READ, WRITE, NOFOLLOW_LINKS);
    try {
      FileLock held;
      try {
        held = channel.tryLock();
      } catch (OverlappingFileLockException e) {
        held = null;
      }
      if (held == null) {
        throw new InUseException(root, holder(channel));
      }
      channel.truncate(0);
      channel.write(ByteBuffer.wrap(self().getBytes(StandardCharsets.UTF_8)), 0);
      return new Lock(real, file, key(file), channel);
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  private static String self() {
    return "process %d on %s".formatted(ProcessHandle.current().pid(), Agreement.hostName());
  }

  private static String holder(FileChannel channel) throws IOException {
    ByteBuffer text = ByteBuffer.allocate(LONGEST);
    channel.read(text, 0);
    return StandardCharsets.UTF_8.decode(text.flip()).toString();
  }

  private static byte[] writeToken(Path root, String host) throws IOException {
    String token = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    Files.createFile(root.resolve(CheckpointFolder.SEEN + token));
    return (token + host).getBytes(StandardCharsets.UTF_8);
  }

  private static Path tokenFile(Path root, String token) {
    return root.resolve(CheckpointFolder.SEEN + token.substring(0, 16));
  }

  private static byte[] requireToken(Path root, String token) throws IOException {
    Path file = tokenFile(root, token);
    if (!Files.exists(file)) {
      throw new IOException(
          "%s is not the folder that rank 0 on host %s uses; choose one that all hosts share"
              .formatted(root, token.substring(16)));
    }
    return new byte[0];
  }

  private static void deleteToken(Path root, String token) {
    try {
      Files.deleteIfExists(tokenFile(root, token));
    } catch (IOException e) {
      throw new CheckpointException("cannot delete " + tokenFile(root, token), e);
    }
  }

  /**
   * Checks on rank 0 that the folder is still the one that it locked, so that no other job uses it.
   *
   * @throws CheckpointException if the folder was removed or replaced
   */
  void requireHeld() {
    if (lock == null) {
      return;
    }
    IOException failure = null;
    try {
      if (Objects.equals(key(lock.file), lock.key)) {
        return;
      }
    } catch (IOException e) {
      failure = e;
    }
    throw new CheckpointException(
        lock.file
            + " was removed or replaced, so another job may use the folder; close these"
            + " checkpoints, and open a folder",
        failure);
  }

  @Override
  public void close() {
    if (lock != null) {
      try {
        OWNED.remove(lock.folder);
        lock.channel.close();
      } catch (IOException e) {
        throw new CheckpointException("cannot release the lock of the folder: " + e, e);
      }
    }
  }
}
