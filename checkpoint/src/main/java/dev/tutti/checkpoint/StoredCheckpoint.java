package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.checkpoint.folder.PieceReader;
import dev.tutti.checkpoint.format.FileRecord;
import dev.tutti.checkpoint.format.Manifest;
import dev.tutti.checkpoint.format.Safetensors;
import dev.tutti.checkpoint.format.StoredRange;
import dev.tutti.checkpoint.format.StoredTensor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** A checkpoint in a folder, for tools: reading it needs no group. Immutable. */
public final class StoredCheckpoint {
  private final CheckpointFolder folder;
  private final Manifest manifest;

  /**
   * A tensor of a checkpoint.
   *
   * @param section its section
   * @param name its name in the section
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first
   * @param files how many ranges it is stored in
   */
  public record TensorInfo(String section, String name, DType dtype, List<Long> shape, int files) {}

  private StoredCheckpoint(CheckpointFolder folder, Manifest manifest) {
    this.folder = folder;
    this.manifest = manifest;
  }

  /**
   * Returns the steps of the published checkpoints in a folder, in ascending order.
   *
   * @param folder the folder given to {@link Checkpoints#in}
   * @throws IOException if it cannot be listed
   */
  public static List<Long> steps(Path folder) throws IOException {
    return new CheckpointFolder(new NioDisk(), folder).steps();
  }

  /**
   * Reads the manifest of a checkpoint.
   *
   * @param folder the folder given to {@link Checkpoints#in}
   * @param step its step
   * @throws IOException naming the file, if the manifest is missing or damaged
   */
  public static StoredCheckpoint open(Path folder, long step) throws IOException {
    return open(new CheckpointFolder(new NioDisk(), folder), step);
  }

  static StoredCheckpoint open(CheckpointFolder folder, long step) throws IOException {
    return new StoredCheckpoint(folder, folder.manifest(step));
  }

  /** Returns the step after which it was saved. */
  public long step() {
    return manifest.step();
  }

  /** Returns how many ranks saved it. */
  public int ranks() {
    return manifest.ranks();
  }

  /** Returns the number of bytes of its files, without the manifest. */
  public long byteSize() {
    return manifest.files().stream().mapToLong(FileRecord::length).sum();
  }

  /** Returns its tensors, in the order of the files. */
  public List<TensorInfo> tensors() {
    Map<List<String>, TensorInfo> all = new LinkedHashMap<>();
    for (StoredRange range : manifest.ranges()) {
      TensorInfo info =
          new TensorInfo(range.section(), range.tensor(), range.dtype(), range.shape().sizes(), 1);
      all.merge(
          List.of(range.section(), range.tensor()),
          info,
          (old, more) ->
              new TensorInfo(old.section(), old.name(), old.dtype(), old.shape(), old.files() + 1));
    }
    return List.copyOf(all.values());
  }

  /** Returns the counters of each section that is divided among ranks. */
  public Map<String, Map<String, Long>> counters() {
    return manifest.counters();
  }

  /** Returns the values of each name, one for each rank that saved. */
  public Map<String, List<String>> values() {
    return manifest.values();
  }

  /**
   * Reads all of its files, and compares them with the manifest.
   *
   * @throws IOException naming the file and the fault, if a byte has changed
   */
  public void verify() throws IOException {
    Path checkpoint = folder.published(step());
    PieceReader reader = new PieceReader(folder.disk(), checkpoint, manifest.files(), false);
    for (int file = 0; file < manifest.files().size(); file++) {
      reader.check(file);
      if (manifest.files().get(file).name().endsWith(".safetensors")) {
        requireTensors(reader, file);
      }
    }
  }

  private void requireTensors(PieceReader reader, int file) throws IOException {
    FileRecord record = manifest.files().get(file);
    ByteBuffer length = bytes(reader, file, 0, Safetensors.LENGTH_BYTES);
    ByteBuffer json =
        bytes(
            reader,
            file,
            Safetensors.LENGTH_BYTES,
            Safetensors.headerLength(length, record.length()));
    Set<List<Object>> tensors = new HashSet<>();
    for (StoredTensor tensor : Safetensors.tensors(json, record.length())) {
      tensors.add(List.of(tensor.start(), tensor.byteSize(), tensor.dtype()));
    }
    for (StoredRange range : manifest.ranges()) {
      if (range.file() == file
          && !tensors.contains(
              List.<Object>of(range.start(), range.byteSize(), Optional.of(range.dtype())))) {
        throw new IOException(
            "%s has no tensor for '%s' of section '%s'"
                .formatted(record.name(), range.tensor(), range.section()));
      }
    }
  }

  private static ByteBuffer bytes(PieceReader reader, int file, long start, int count)
      throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(count);
    reader.read(file, start, MemorySegment.ofBuffer(bytes));
    return bytes;
  }
}
