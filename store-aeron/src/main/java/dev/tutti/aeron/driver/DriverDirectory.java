package dev.tutti.aeron.driver;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.LogNames;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The folder of one driver in shared memory, with a unique name, deleted when closed. */
public final class DriverDirectory implements AutoCloseable {
  /*
   * The process that owns a folder holds a lock on a file in it, which the kernel releases when
   * that process ends, in whatever way. A process that gets the lock of another's folder has found
   * a stale one, and deletes it. Closing any handle of a file releases all locks that the process
   * holds on it, so a process must not look into its own folders, and therefore keeps their names.
   * The process number in a name does not suffice: it may also be that of a process in another
   * container, or of an earlier one here. Another class loader of this process has its own set, so
   * the names are also JVM properties.
   */
  /** The setting that gives the folder for shared memory. */
  public static final String SETTING = "TUTTI_AERON_DIR";

  /** The memory of a driver itself: its smallest counters, errors and commands. */
  public static final long DRIVER_BYTES = 12_400L << 10;

  /** The memory of a session: two streams of three terms, and a page for each. */
  public static final long SESSION_BYTES = 2 * (3L * Channels.TERM_BYTES + 4096);

  static final Path SHARED_MEMORY = Path.of("/dev/shm");

  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final String REMEDIES =
      "Give the container more (docker run --shm-size=256m; in Kubernetes an emptyDir with medium:"
          + " Memory mounted at /dev/shm), set "
          + SETTING
          + " to a folder with enough room, or use TUTTI_STORE=tcp";
  private static final String PREFIX = "tutti-aeron-";
  private static final String LOCK = "lock";
  private static final String PROOF = "proof";
  private static final String DRIVER = "driver";
  private static final int PROOF_BYTES = 32;
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final String OWN_PROPERTY = "dev.tutti.aeron.folder.";
  private static final Set<String> OWN = ConcurrentHashMap.newKeySet();

  private final Path path;
  private final FileChannel lockFile;
  private final byte[] proof = new byte[PROOF_BYTES];

  private DriverDirectory(Path path, FileChannel lockFile) throws IOException {
    this.path = path;
    this.lockFile = lockFile;
    RANDOM.nextBytes(proof);
    Files.write(path.resolve(PROOF), proof);
  }

  /** Returns where drivers have their folders unless a setting overrides it. */
  public static Path defaultParent() {
    return Files.isWritable(SHARED_MEMORY)
        ? SHARED_MEMORY
        : Path.of(System.getProperty("java.io.tmpdir"));
  }

  /**
   * Creates a folder, after deleting those left behind by ended processes.
   *
   * @param parent the parent folder
   * @param bytes the number of bytes for which there must be room
   * @throws StoreException if there is not enough room or no permission
   */
  public static DriverDirectory create(Path parent, long bytes) {
    try {
      deleteStale(parent);
      requireRoom(parent, bytes);
      while (true) {
        byte[] number = new byte[4];
        RANDOM.nextBytes(number);
        String name =
            PREFIX + ProcessHandle.current().pid() + "-" + HexFormat.of().formatHex(number);
        Path path = parent.resolve(name);
        keep(path);
        try {
          Files.createDirectory(
              path,
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (IOException | RuntimeException e) {
          forget(path);
          throw e;
        }
        DriverDirectory directory = take(path);
        if (directory != null) {
          return directory;
        }
      }
    } catch (IOException e) {
      throw new StoreException(
          "cannot create a folder for shared memory in %s: %s; set %s to another folder, or use TUTTI_STORE=tcp"
              .formatted(parent, e, SETTING),
          e);
    }
  }

  /** Takes a new folder; returns null if another process took it for a stale one first. */
  private static @Nullable DriverDirectory take(Path path) throws IOException {
    FileChannel lockFile = null;
    try {
      lockFile =
          FileChannel.open(
              path.resolve(LOCK), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
      if (lockFile.tryLock() != null && Files.exists(path.resolve(LOCK))) {
        return new DriverDirectory(path, lockFile);
      }
      lockFile.close();
      forget(path);
      return null;
    } catch (IOException | RuntimeException | Error e) {
      discard(path, lockFile);
      throw e;
    }
  }

  private static void keep(Path path) {
    OWN.add(name(path));
    System.setProperty(OWN_PROPERTY + name(path), "");
  }

  private static void forget(Path path) {
    System.clearProperty(OWN_PROPERTY + name(path));
    OWN.remove(name(path));
  }

  private static String name(Path path) {
    return String.valueOf(path.getFileName());
  }

  private static void requireRoom(Path parent, long bytes) throws IOException {
    long room = Files.getFileStore(parent).getUsableSpace();
    if (room < bytes) {
      throw new StoreException(
          String.format(
              Locale.ROOT,
              "%s has %.1f MiB left, but the store needs up to %.1f MiB of shared memory there. %s",
              parent,
              room / (double) (1 << 20),
              bytes / (double) (1 << 20),
              REMEDIES));
    }
  }

  /**
   * Throws if there is no room for one more session.
   *
   * @throws StoreException describing what to do
   */
  void requireRoom() throws IOException {
    requireRoom(Objects.requireNonNull(path.getParent()), SESSION_BYTES);
  }

  /** Returns the driver's own folder. */
  String driver() {
    return path.resolve(DRIVER).toString();
  }

  /** Returns whether a driver's folder is in a folder of this class, so that Tutti runs it. */
  static boolean isDriver(Path driver) {
    Path parent = driver.getParent();
    return parent != null && name(driver).equals(DRIVER) && name(parent).startsWith(PREFIX);
  }

  public Path path() {
    return path;
  }

  /** Returns a secret that is known only to processes that can see this folder. */
  public byte[] proof() {
    return proof.clone();
  }

  /** Returns whether a folder named by a server is shared with this process. */
  public static boolean isShared(String folder, byte[] proof) {
    Path path = Path.of(folder);
    try {
      return name(path).startsWith(PREFIX)
          && Files.size(path.resolve(PROOF)) == proof.length
          && Arrays.equals(Files.readAllBytes(path.resolve(PROOF)), proof);
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "no shared memory with the store server: {0}", e.toString());
      return false;
    }
  }

  /** Deletes the folder of a server if its process has ended. */
  public static void deleteIfStale(String folder) {
    Path path = Path.of(folder);
    if (isOfOthers(path)) {
      Leftovers.deleteIfUnlocked(path, LOCK);
    }
  }

  private static void deleteStale(Path parent) throws IOException {
    try (DirectoryStream<Path> all = Files.newDirectoryStream(parent, PREFIX + "*")) {
      for (Path path : all) {
        if (isOfOthers(path)) {
          Leftovers.deleteIfUnlocked(path, LOCK);
        }
      }
    }
  }

  private static boolean isOfOthers(Path path) {
    String name = name(path);
    return name.startsWith(PREFIX)
        && !OWN.contains(name)
        && System.getProperty(OWN_PROPERTY + name) == null;
  }

  /** Deletes the folder; the driver must have ended. */
  @Override
  public void close() {
    discard(path, lockFile);
  }

  private static void discard(Path path, @Nullable FileChannel lockFile) {
    try {
      Leftovers.delete(path);
    } catch (NoSuchFileException e) {
      LOG.log(Level.DEBUG, "{0} is gone already", path);
    } catch (IOException e) {
      LOG.log(Level.WARNING, "cannot delete {0}: {1}", path, e.toString());
    } finally {
      try {
        if (lockFile != null) {
          lockFile.close();
        }
      } catch (IOException e) {
        LOG.log(Level.DEBUG, "cannot close a lock file", e);
      }
      forget(path);
    }
  }
}
