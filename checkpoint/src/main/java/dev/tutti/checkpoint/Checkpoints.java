package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The checkpoints of a job in a folder that all of its ranks share.
 *
 * {@snippet file="CheckpointSnippetsTest.java" region="checkpoints"}
 *
 * <p>A checkpoint is a folder {@code step-N} of safetensors files, a share for each rank, and a
 * manifest with checksums. It appears under its name when all of it is on the device, so a reader
 * never sees half of it. Any number of ranks can load it.
 *
 * <p>All ranks of the group call the constructor and the methods in the same order, each from one
 * thread at a time.
 */
public final class Checkpoints implements AutoCloseable {
  /*
   * A save copies this rank's share on the caller's thread, and writes it on a thread of its own.
   * That thread calls collectives on a group of its own, so that they never mix with those of
   * training. There is one save at a time: the next one, a load and close() wait for it, so the
   * buffer and the group have one user at any time.
   */
  /** The folders of later steps would not be found again. */
  private static final long LAST_STEP = 999_999_999_999_999_999L;

  /** A deadline meant for collectives of training may be shorter than a file takes. */
  private static final Duration LEAST_TIMEOUT = Duration.ofMinutes(30);

  private final ProcessGroup group;
  private final FolderOwner owner;
  private final CheckpointFolder folder;
  private final Buffer buffer = new Buffer();
  private final ExecutorService writer;
  private int kept = Integer.MAX_VALUE;
  private @Nullable Saving last;
  private boolean closed;

  private Checkpoints(
      ProcessGroup group, ExecutorService writer, FolderOwner owner, CheckpointFolder folder) {
    this.group = group;
    this.writer = writer;
    this.owner = owner;
    this.folder = folder;
  }

  /**
   * Opens the checkpoints of a job, and deletes what an earlier job left unfinished.
   *
   * @param group the group of all ranks that save and load, which needs a backend for the host; it
   *     stays open
   * @param folder the folder, created if it does not exist, on storage that all hosts share
   * @throws CheckpointException on all ranks, if a rank does not see the folder of rank 0, or
   *     another job uses it
   * @throws IllegalArgumentException if the group has no backend for the host
   */
  public static Checkpoints in(ProcessGroup group, Path folder) {
    return in(group, folder, new NioDisk());
  }

  static Checkpoints in(ProcessGroup group, Path folder, Disk disk) {
    return open(ownGroup(group), folder, disk, FolderOwner.Patience.NONE);
  }

  /**
   * Opens the checkpoints of a job.
   *
   * @param own the result of {@link #ownGroup}, which is closed with these checkpoints
   */
  static Checkpoints open(ProcessGroup own, Path folder, Disk disk, FolderOwner.Patience patience) {
    Path root = folder.toAbsolutePath();
    ExecutorService writer =
        Executors.newSingleThreadExecutor(
            Thread.ofPlatform().daemon().name("tutti-checkpoint-" + own.rank()).factory());
    try {
      FolderOwner owner = FolderOwner.take(own, writer, root, disk, patience);
      Checkpoints opened = new Checkpoints(own, writer, owner, new CheckpointFolder(disk, root));
      opened.rehearse();
      return opened;
    } catch (RuntimeException | Error e) {
      writer.shutdown();
      own.close();
      throw e;
    }
  }

  /** Returns a group of the same ranks, in which they may wait while others write. */
  static ProcessGroup ownGroup(ProcessGroup group) {
    if (!group.backends().containsKey(Device.CPU.type())) {
      throw new IllegalArgumentException(
          "the group has no backend for the host, with which ranks agree on a checkpoint; its"
              + " backends are "
              + group.backends());
    }
    ProcessGroup own =
        group.subgroup(IntStream.range(0, group.size()).boxed().toList()).orElseThrow();
    if (own.timeout().compareTo(LEAST_TIMEOUT) < 0) {
      own.setTimeout(LEAST_TIMEOUT);
    }
    return own;
  }

  /**
   * Sets how many checkpoints remain; a save deletes older ones when it is published.
   *
   * @param count the number, at least 1, or else these checkpoints are closed; without this call
   *     all remain
   * @return this object
   */
  public Checkpoints keeping(int count) {
    if (count < 1) {
      close();
      throw new IllegalArgumentException("at least 1 checkpoint must remain, not " + count);
    }
    kept = count;
    return this;
  }

  /**
   * Begins to save. When it returns, this rank's share is copied, and the program may change the
   * tensors.
   *
   * @param step the step of training, from 0 to 10^18 - 1, greater than that of each checkpoint in
   *     the folder
   * @param contents what is saved, the same sections on all ranks
   * @return the save, which continues by itself; the next call waits for it. It fails on all ranks
   *     if a rank cannot copy its share, or did not await the save before, which failed.
   */
  public Saving save(long step, Contents contents) {
    last = begin(step, contents, writer, new CopiesBeside(), HostCopy::toHost);
    return last;
  }

  /**
   * Begins to save as {@link #save} does, but copies tensors on devices while it returns, in a
   * stream of its own after the work that is in the calling thread's current stream, through some
   * MiB of pinned memory. Until {@link Saving#awaitCopied} returns, the program may enqueue work
   * that reads these tensors, such as a forward and a backward pass, and must not change them.
   *
   * @param step the step of training, as in {@link #save}
   * @param contents what is saved, the same sections on all ranks
   * @return the save, which continues by itself
   */
  public Saving saveBeside(long step, Contents contents) {
    CopiesBeside copies = new CopiesBeside();
    last = begin(step, contents, writer, copies, copies::copy);
    return last;
  }

  /** Copies this rank's share, and lets an executor write it. */
  private Saving begin(
      long step,
      Contents contents,
      Executor executor,
      CopiesBeside copies,
      BiConsumer<Tensor, Tensor> copier) {
    RuntimeException before = unobservedFailure();
    Supplier<Snapshot> snapshot = snapshot(step, contents, copier, before);
    CompletableFuture<Void> copied = new CompletableFuture<>();
    SaveRun run =
        new SaveRun(
            group,
            folder,
            kept,
            step,
            snapshot,
            () -> {
              copies.run();
              copied.complete(null);
            });
    return new Saving(
        step,
        copied,
        CompletableFuture.runAsync(
            () -> {
              try {
                run.run();
              } catch (RuntimeException | Error e) {
                run.discard();
                throw e;
              } finally {
                copies.discard();
                copied.complete(null);
              }
            },
            executor));
  }

  /**
   * Begins a save that nobody writes, of a byte for each rank, since the JVM loads and links what
   * is called for the first time, and training would wait for that.
   */
  private void rehearse() {
    List<String> names = IntStream.range(0, group.size()).mapToObj(String::valueOf).toList();
    Tensor tensor = Tensor.allocate(DType.UINT8, 1);
    begin(
        0,
        Contents.of().copies("rehearsal", names, Collections.nCopies(names.size(), tensor)),
        run -> {},
        new CopiesBeside(),
        HostCopy::toHost);
  }

  /**
   * Loads the latest checkpoint. All ranks check that it fits before any of them changes a tensor.
   *
   * @param contents where to load it; sections that only the checkpoint has are ignored
   * @return its step, or empty if the folder has no checkpoint
   * @throws CheckpointException on all ranks, if a rank cannot load it: names, types or shapes
   *     differ, or a file is missing or damaged
   */
  public OptionalLong loadLatest(Contents contents) {
    OptionalLong step = new LoadRun(group, writer, folder, contents, unobservedFailure()).latest();
    prepare(contents);
    return step;
  }

  /**
   * Loads the checkpoint of a step, as {@link #loadLatest} does.
   *
   * @param step the step
   * @param contents where to load it
   * @throws CheckpointException on all ranks, if a rank cannot load it
   */
  public void load(long step, Contents contents) {
    new LoadRun(group, writer, folder, contents, unobservedFailure()).load(step);
    prepare(contents);
  }

  /** Allocates what a save of the contents needs on another thread, so that none waits for it. */
  private void prepare(Contents contents) {
    long bytes = Snapshot.byteSize(contents, group);
    writer.execute(
        () -> {
          try {
            buffer.ofSize(bytes);
          } catch (OutOfMemoryError e) {
            // A save tries it again, and fails on all ranks.
          }
        });
  }

  /**
   * Copies this rank's share. A failure is one of the save, so that no rank waits for this one; so
   * is that of the save before, if this rank did not await it while others did.
   */
  private Supplier<Snapshot> snapshot(
      long step,
      Contents contents,
      BiConsumer<Tensor, Tensor> copier,
      @Nullable RuntimeException before) {
    try {
      if (before != null) {
        throw before;
      }
      owner.requireHeld();
      if (step < 0 || step > LAST_STEP) {
        throw new IllegalArgumentException(
            "the step must be from 0 to %d, not %d".formatted(LAST_STEP, step));
      }
      Snapshot snapshot = Snapshot.take(contents, group, buffer, copier);
      return () -> snapshot;
    } catch (RuntimeException e) {
      return () -> {
        throw e;
      };
    } catch (Error e) {
      return () -> {
        throw e;
      };
    }
  }

  /** Waits for the last save, also if it fails; whoever asks next gets the failure. */
  void awaitLast() {
    Saving pending = last;
    if (pending != null) {
      pending.awaitEnd();
    }
  }

  /** Returns whether a save is not over on this rank. */
  boolean isSaving() {
    return last != null && !last.isDone();
  }

  /** Waits for the save before, and returns its failure if nobody awaited it. */
  private @Nullable RuntimeException unobservedFailure() {
    if (closed) {
      throw new IllegalStateException("these checkpoints were closed");
    }
    Saving before = last;
    last = null;
    if (before == null) {
      return null;
    }
    try {
      before.end();
      return null;
    } catch (CheckpointException e) {
      return e;
    }
  }

  /**
   * Waits for the last save, and leaves the folder to other jobs. Further calls have no effect.
   *
   * @throws CheckpointException if the last save failed and nobody awaited it
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    RuntimeException before = unobservedFailure();
    closed = true;
    writer.shutdown();
    buffer.close();
    try {
      group.close();
    } finally {
      owner.close();
    }
    if (before != null) {
      throw before;
    }
  }
}
