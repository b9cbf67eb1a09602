package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.MalformedException;
import dev.tutti.checkpoint.format.Manifest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The folder of a job's checkpoints, one folder {@code step-N} for each. */
public final class CheckpointFolder {
  /*
   * A checkpoint is written to .saving-N-NONCE. Its files are forced, then the manifest, then the
   * folder; then the folder is renamed to step-N, and the parent is forced. So a folder step-N has
   * all of its content, whatever happens to the host, and a save that was awaited is not lost. To
   * delete one, it is renamed to .deleting-N first, so that no half of it is ever read. What a
   * killed job left under either name is swept by the next job.
   */
  /** The name of the manifest in a checkpoint. */
  public static final String MANIFEST = "checkpoint.json";

  /** How the names of files begin by which ranks check that they see one folder. */
  public static final String SEEN = ".seen-";

  private static final Pattern STEP = Pattern.compile("step-(0|[1-9][0-9]{0,17})");
  private static final String SAVING = ".saving-";
  private static final String DELETING = ".deleting-";

  private final Disk disk;
  private final Path root;

  /**
   * Creates a view of a folder.
   *
   * @param disk the file system
   * @param root the folder, which exists
   */
  public CheckpointFolder(Disk disk, Path root) {
    this.disk = disk;
    this.root = root;
  }

  /** Returns the file system. */
  public Disk disk() {
    return disk;
  }

  /** Returns the folder of all checkpoints. */
  public Path root() {
    return root;
  }

  /** Returns the folder of a published checkpoint. */
  public Path published(long step) {
    return root.resolve("step-" + step);
  }

  /** Returns the steps of the published checkpoints, in ascending order. */
  public List<Long> steps() throws IOException {
    List<Long> steps = new ArrayList<>();
    for (String name : disk.list(root)) {
      Matcher matcher = STEP.matcher(name);
      if (matcher.matches()) {
        steps.add(Long.parseLong(matcher.group(1)));
      }
    }
    Collections.sort(steps);
    return steps;
  }

  /** Returns the step of the latest checkpoint, if there is one. */
  public OptionalLong latest() throws IOException {
    return steps().stream().mapToLong(Long::longValue).max();
  }

  /**
   * Reads the manifest of a checkpoint.
   *
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public Manifest manifest(long step) throws IOException {
    Path file = published(step).resolve(MANIFEST);
    try (Disk.Input input = disk.open(file, true)) {
      if (input.length() > Integer.MAX_VALUE - 8) {
        throw new MalformedException("it has " + input.length() + " bytes");
      }
      int length = (int) input.length();
      int endBytes = Math.min(length, Manifest.END_BYTES);
      Manifest.requireEnd(bytes(input, length - endBytes, endBytes));
      Manifest manifest = Manifest.decode(bytes(input, 0, length));
      if (manifest.step() != step) {
        throw new MalformedException("it is that of step " + manifest.step());
      }
      return manifest;
    } catch (NoSuchFileException e) {
      if (steps().contains(step)) {
        throw new IOException(damaged(step, "it is missing"), e);
      }
      throw new IOException(file + ": there is no such checkpoint", e);
    } catch (MalformedException e) {
      throw new IOException(damaged(step, String.valueOf(e.getMessage())), e);
    }
  }

  private static byte[] bytes(Disk.Input input, long start, int count) throws IOException {
    byte[] bytes = new byte[count];
    input.read(start, ByteBuffer.wrap(bytes));
    return bytes;
  }

  private String damaged(long step, String what) {
    Path folder = published(step);
    return "%s is damaged: %s; move %s away to load an older checkpoint"
        .formatted(folder.resolve(MANIFEST), what, folder);
  }

  /**
   * Creates the folder to which all ranks write a checkpoint.
   *
   * @param step the step, after those of all checkpoints in the folder
   * @param nonce a number that no other save has
   * @throws IOException if there is a checkpoint of this step or a later one
   */
  public Path begin(long step, long nonce) throws IOException {
    OptionalLong latest = latest();
    if (latest.isPresent() && latest.getAsLong() >= step) {
      throw new IOException(
          "%s holds step %d already; save later steps only, or to another folder"
              .formatted(root, latest.getAsLong()));
    }
    Path folder = saving(step, nonce);
    disk.createFolder(folder);
    return folder;
  }

  /** Returns the folder to which all ranks write a checkpoint. */
  public Path saving(long step, long nonce) {
    return root.resolve(SAVING + step + "-" + HexFormat.of().toHexDigits(nonce));
  }

  /**
   * Publishes a checkpoint whose files were forced: writes its manifest, and gives it its name.
   *
   * @param folder the folder that {@link #begin} created
   * @param manifest the manifest
   */
  public void publish(Path folder, Manifest manifest) throws IOException {
    writeForced(folder.resolve(MANIFEST), ByteBuffer.wrap(manifest.encode()));
    disk.forceFolder(folder);
    Path published = published(manifest.step());
    disk.rename(folder, published);
    try {
      disk.forceFolder(root);
    } catch (IOException e) {
      throw new IOException(
          "%s is complete, but a crash of the host may lose it, since its name could not be forced: %s"
              .formatted(published, e.getMessage()),
          e);
    }
  }

  /**
   * Writes a small file and forces it.
   *
   * @param file the file, which must not exist
   * @param bytes its content
   */
  public void writeForced(Path file, ByteBuffer bytes) throws IOException {
    try (Disk.Output output = disk.create(file)) {
      output.write(0, bytes);
      output.force();
    }
  }

  /**
   * Deletes the oldest checkpoints.
   *
   * @param kept how many remain, at least one
   */
  public void keep(int kept) throws IOException {
    List<Long> steps = new ArrayList<>();
    for (long step : steps()) {
      if (disk.isFile(published(step).resolve(MANIFEST))) {
        steps.add(step);
      }
    }
    List<Long> deleted = steps.subList(0, Math.max(0, steps.size() - kept));
    for (long step : deleted) {
      disk.rename(published(step), root.resolve(DELETING + step));
    }
    if (!deleted.isEmpty()) {
      disk.forceFolder(root);
    }
    delete(DELETING);
  }

  /** Deletes what jobs left that no longer run; only the owner of the folder may call it. */
  public void sweep() throws IOException {
    delete(SAVING, DELETING, SEEN);
  }

  private void delete(String... prefixes) throws IOException {
    for (String name : disk.list(root)) {
      if (Arrays.stream(prefixes).anyMatch(name::startsWith)) {
        disk.delete(root.resolve(name));
      }
    }
  }
}
