package dev.tutti.store.file;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyText;
import dev.tutti.store.table.Locks;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A store that keeps its keys in a file that all ranks see (c10d: {@code FileStore}), in PyTorch's
 * format and under its locks, so that ranks of both can share a file.
 *
 * <p>A waiting rank polls the file, first often, later every ten milliseconds. The file is deleted
 * when all ranks have closed their stores. A file left by a former run is refused; {@link
 * #FileStore(Path, int, Duration)} gives the rule. Queues and barriers work between JVM ranks only.
 */
public final class FileStore implements Store {
  /*
   * The handles of one store share the known content of the file, under one lock; a transaction
   * takes the file lock while it holds that lock. A waiting call releases the lock between looks,
   * and looks again when its pause is over, when another call of this process has read something
   * new, or when its handle is closed.
   *
   * Keys that PyTorch does not have are kept apart from user keys by having no slash: a queue is a
   * record "first next" and one record per value, and a barrier is a record "round arrived size".
   */
  private static final Logger LOG = System.getLogger(FileStore.class.getName());
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final Shared shared;
  private final Duration timeout;
  private final AtomicBoolean closed = new AtomicBoolean();

  private static final class Shared {
    final ReentrantLock lock = new ReentrantLock();
    final Condition changed = lock.newCondition();
    final FileLog log;
    final FileMembers members;
    final Path path;
    final Time time;
    int handles = 1;

    Shared(FileLog log, FileMembers members, Path path, Time time) {
      this.log = log;
      this.members = members;
      this.path = path;
      this.time = time;
    }
  }

  /**
   * Opens a store file with {@link Store#DEFAULT_TIMEOUT}, creating it if it does not exist.
   *
   * @param path the file; its directory must exist
   * @param worldSize the number of ranks that will open the file, which is deleted when all of them
   *     have closed it; 0 if that is not known, in which case the file is never deleted
   * @throws StoreException as {@link #FileStore(Path, int, Duration)} says
   */
  public FileStore(Path path, int worldSize) {
    this(path, worldSize, DEFAULT_TIMEOUT);
  }

  /**
   * Opens a store file, creating it if it does not exist.
   *
   * <p>A file with content is taken to belong to this run if a JVM that has it open is known to
   * run; or if none is known to be dead, not all ranks have closed it, and it was changed no longer
   * ago than {@code timeout}. JVMs on other hosts and in other containers, and ranks of PyTorch,
   * cannot be checked.
   *
   * @param path the file; its directory must exist
   * @param worldSize the number of ranks that will open the file, which is deleted when all of them
   *     have closed it; 0 if that is not known, in which case the file is never deleted
   * @param timeout the deadline of calls that have none of their own, and of waiting for the file
   *     lock
   * @throws StoreException if the file cannot be opened, is not a store file, or was left by a
   *     former run
   */
  public FileStore(Path path, int worldSize, Duration timeout) {
    this(path, worldSize, timeout, Time.SYSTEM);
  }

  FileStore(Path path, int worldSize, Duration timeout, Time time) {
    if (worldSize < 0) {
      throw new IllegalArgumentException("worldSize must not be negative: " + worldSize);
    }
    this.timeout = timeout;
    Path absolute = path.toAbsolutePath();
    FileLog log = new FileLog(absolute, time);
    this.shared =
        new Shared(log, new FileMembers(absolute, worldSize, timeout, time), absolute, time);
    log.transact(
        true,
        Arguments.deadline(time, Arguments.nanos(timeout)),
        changes -> {
          shared.members.requireFresh(log.values(), log.modified());
          shared.members.join(changes);
          return true;
        });
  }

  private FileStore(FileStore other) {
    this.shared = other.shared;
    this.timeout = other.timeout;
  }

  @Override
  public Duration timeout() {
    return timeout;
  }

  /** Returns the absolute path of the file. */
  public Path path() {
    return shared.path;
  }

  @Override
  public void set(String key, byte[] value) {
    String name = name(key);
    Arguments.value(key, value);
    transact(
        changes -> {
          changes.set(name, value.clone());
          return true;
        });
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return multiGet(List.of(key), timeout).get(0);
  }

  @Override
  public long add(String key, long delta) {
    String name = name(key);
    return transact(changes -> changes.add(name, delta));
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    String name = name(key);
    Arguments.value(key, desired);
    return transact(
        changes -> {
          byte[] old = changes.get(name);
          if (!Arguments.same(old, expected)) {
            return new Swap(false, old == null ? null : old.clone());
          }
          changes.set(name, desired.clone());
          return new Swap(true, desired.clone());
        });
  }

  @Override
  public void await(List<String> keys, Duration timeout) {
    List<String> names = names(keys);
    await(
        timeout,
        () -> missing(names, true).isEmpty() ? true : null,
        () -> Arguments.waitTimeout(users(missing(names, true)), names.size(), timeout));
  }

  @Override
  public boolean check(List<String> keys) {
    List<String> names = names(keys);
    return refreshed(() -> missing(names, true).isEmpty());
  }

  @Override
  public boolean deleteKey(String key) {
    String name = name(key);
    return transact(
        changes -> {
          boolean found = changes.get(name) != null;
          if (found) {
            changes.delete(name);
          }
          return found;
        });
  }

  @Override
  public long keyCount() {
    return listKeys().size();
  }

  @Override
  public void append(String key, byte[] value) {
    String name = name(key);
    Arguments.value(key, value);
    transact(
        changes -> {
          byte[] old = changes.get(name);
          changes.set(name, old == null ? value.clone() : Arguments.concat(key, old, value));
          return true;
        });
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    List<String> names = names(keys);
    return await(
        timeout,
        () -> missing(names, false).isEmpty() ? values(names) : null,
        () -> Arguments.waitTimeout(users(missing(names, false)), names.size(), timeout));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    List<String> names = names(keys);
    Arguments.values(keys, values);
    transact(
        changes -> {
          for (int i = 0; i < names.size(); i++) {
            changes.set(names.get(i), values.get(i).clone());
          }
          return true;
        });
  }

  @Override
  public void queuePush(String key, byte[] value) {
    FileQueue queue = new FileQueue(name(key));
    Arguments.value(key, value);
    transact(
        changes -> {
          queue.push(changes, value.clone());
          return true;
        });
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    FileQueue queue = new FileQueue(name(key));
    long nanos = Arguments.nanos(timeout);
    if (nanos <= 0) {
      byte[] value = transact(queue::pop);
      if (value == null) {
        throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
      }
      return value.clone();
    }
    long deadline = Arguments.deadline(shared.time, nanos);
    return await(
            timeout,
            () ->
                queue.length(shared.log.values()) == 0
                    ? null
                    : shared.log.transact(
                        false, graceful(deadline - shared.time.nanoTime()), queue::pop),
            () -> Arguments.popTimeout(key, timeout))
        .clone();
  }

  @Override
  public long queueLength(String key) {
    FileQueue queue = new FileQueue(name(key));
    return refreshed(() -> queue.length(shared.log.values()));
  }

  @Override
  public List<String> listKeys() {
    return refreshed(
        () ->
            shared.log.values().keySet().stream()
                .filter(name -> name.charAt(0) == KeyText.PREFIX)
                .map(FileLog::userKey)
                .sorted()
                .toList());
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    FileBarrier barrier = new FileBarrier(name(key), Arguments.barrierSize(key, size));
    long round = transact(barrier::join);
    if (round < 0) {
      return;
    }
    try {
      await(
          timeout,
          () -> barrier.round(shared.log.values()) > round ? true : null,
          () -> Arguments.barrierTimeout(key, barrier.arrived(shared.log.values()), size, timeout));
    } catch (StoreException e) {
      if (!leave(barrier, round)) {
        throw e;
      }
    }
  }

  /**
   * Removes a member from a barrier; returns whether it was too late because all members had come.
   */
  private boolean leave(FileBarrier barrier, long round) {
    lock(graceful(0));
    try {
      return shared.log.transact(false, graceful(0), changes -> barrier.leave(changes, round));
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  public FileStore duplicate() {
    lock(graceful(Arguments.nanos(timeout)));
    try {
      requireOpen();
      shared.handles++;
      return new FileStore(this);
    } finally {
      shared.lock.unlock();
    }
  }

  /**
   * Closes this handle; the last handle of this process notifies the others, and deletes the file
   * if all are done.
   */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    if (!Locks.acquire(shared.time, shared.lock, graceful(0))) {
      LOG.log(Level.WARNING, "cannot close store file {0}: other calls hold its lock", shared.path);
      return;
    }
    try {
      shared.changed.signalAll();
      if (--shared.handles == 0) {
        shared.log.transact(false, graceful(CLOSE_NANOS), this::leave);
      }
    } catch (StoreException e) {
      LOG.log(Level.WARNING, "cannot close store file {0}: {1}", shared.path, e.getMessage());
    } finally {
      shared.lock.unlock();
    }
  }

  private boolean leave(FileLog.Changes changes) {
    boolean last = shared.members.leave(changes);
    if (last) {
      shared.log.deleteFile();
    }
    return last;
  }

  @Override
  public String toString() {
    return "FileStore[" + shared.path + "]";
  }

  private <T extends @Nullable Object> T transact(FileLog.Transaction<T> transaction) {
    long deadline = graceful(Arguments.nanos(timeout));
    lock(deadline);
    try {
      requireOpen();
      T result = shared.log.transact(false, deadline, transaction);
      shared.changed.signalAll();
      return result;
    } finally {
      shared.lock.unlock();
    }
  }

  private <T> T refreshed(Supplier<T> look) {
    long deadline = graceful(Arguments.nanos(timeout));
    lock(deadline);
    try {
      requireOpen();
      refresh(deadline);
      return look.get();
    } finally {
      shared.lock.unlock();
    }
  }

  private <T> T await(
      Duration timeout, Supplier<@Nullable T> look, Supplier<StoreTimeoutException> late) {
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(shared.time, nanos);
    long pause = FIRST_PAUSE_NANOS;
    lock(graceful(nanos));
    try {
      while (true) {
        requireOpen();
        if (refresh(graceful(deadline - shared.time.nanoTime()))) {
          pause = FIRST_PAUSE_NANOS;
        }
        T found = look.get();
        if (found != null) {
          return found;
        }
        long left = deadline - shared.time.nanoTime();
        if (left <= 0) {
          throw late.get();
        }
        long _ = shared.time.await(shared.lock, shared.changed, Math.min(pause, left));
        pause = Math.min(LONGEST_PAUSE_NANOS, pause * 2);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException(
          "interrupted while waiting for a change of store file " + shared.path, e);
    } finally {
      shared.lock.unlock();
    }
  }

  private boolean refresh(long deadline) {
    boolean news = shared.log.refresh(deadline);
    if (news) {
      shared.changed.signalAll();
    }
    return news;
  }

  private List<String> missing(List<String> names, boolean orQueues) {
    Map<String, byte[]> values = shared.log.values();
    return names.stream()
        .filter(
            name ->
                !values.containsKey(name)
                    && !(orQueues && values.containsKey(FileQueue.stateKey(name))))
        .toList();
  }

  private List<byte[]> values(List<String> names) {
    Map<String, byte[]> values = shared.log.values();
    List<byte[]> copies = new ArrayList<>(names.size());
    names.forEach(name -> copies.add(Objects.requireNonNull(values.get(name)).clone()));
    return copies;
  }

  private void requireOpen() {
    if (closed.get()) {
      throw new StoreClosedException("the store of file " + shared.path + " is closed");
    }
  }

  private void lock(long deadline) {
    if (!Locks.acquire(shared.time, shared.lock, deadline)) {
      throw new StoreSilentException(
          "timed out because other calls hold the lock of store file " + shared.path);
    }
  }

  /** Returns a deadline that gives others a second to release the file lock. */
  private long graceful(long nanos) {
    return Arguments.deadline(shared.time, Math.max(nanos, GRACE_NANOS));
  }

  private static String name(String key) {
    return KeyText.PREFIX
        + new String(Arguments.key(key).getBytes(StandardCharsets.UTF_8), KeyText.BYTES);
  }

  private static List<String> names(List<String> keys) {
    return Arguments.keys(keys).stream().map(FileStore::name).toList();
  }

  private static List<String> users(List<String> names) {
    return names.stream().map(FileLog::userKey).toList();
  }
}
