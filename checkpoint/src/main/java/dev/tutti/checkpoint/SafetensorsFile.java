package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.checkpoint.format.FileRecord;
import dev.tutti.checkpoint.format.MalformedException;
import dev.tutti.checkpoint.format.Safetensors;
import dev.tutti.checkpoint.format.Shape;
import dev.tutti.checkpoint.format.StoredTensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A safetensors file, of whoever wrote it, such as a pretrained model. Opening it reads and checks
 * its header; such files have no checksums, so changed elements are not noticed. Any thread may
 * call the methods.
 */
public final class SafetensorsFile implements AutoCloseable {
  private final Path path;
  private final Disk.Input input;
  private final Map<String, StoredTensor> tensors = new LinkedHashMap<>();

  private SafetensorsFile(Path path, Disk.Input input) {
    this.path = path;
    this.input = input;
  }

  /**
   * Opens a file.
   *
   * @param path the file
   * @throws IOException naming the file and the fault, if it cannot be read or its header is not
   *     what the format demands
   */
  public static SafetensorsFile open(Path path) throws IOException {
    Disk.Input input = new NioDisk().open(path, true);
    try {
      SafetensorsFile file = new SafetensorsFile(path, input);
      file.readHeader();
      return file;
    } catch (MalformedException e) {
      input.close();
      throw new IOException(path + " is not a safetensors file: " + e.getMessage(), e);
    } catch (IOException | RuntimeException | Error e) {
      input.close();
      throw e;
    }
  }

  private void readHeader() throws IOException {
    long length = input.length();
    if (length < Safetensors.LENGTH_BYTES) {
      throw new MalformedException("it has %d bytes".formatted(length));
    }
    ByteBuffer start = ByteBuffer.allocate(Safetensors.LENGTH_BYTES);
    input.read(0, start);
    ByteBuffer json = ByteBuffer.allocate(Safetensors.headerLength(start.flip(), length));
    input.read(Safetensors.LENGTH_BYTES, json);
    for (StoredTensor tensor : Safetensors.tensors(json.flip(), length)) {
      tensors.put(tensor.name(), tensor);
    }
  }

  /** Returns the names of the tensors, in the order of their data. */
  public List<String> names() {
    return List.copyOf(tensors.keySet());
  }

  /**
   * Returns the shape of a tensor, in elements, outermost first.
   *
   * @param name its name
   * @throws IllegalArgumentException if the file has no such tensor
   */
  public long[] shape(String name) {
    return find(name).shape().sizes().stream().mapToLong(Long::longValue).toArray();
  }

  /**
   * Returns the element type of a tensor.
   *
   * @param name its name
   * @throws IllegalArgumentException if the file has no such tensor, or tensors of this library
   *     cannot have the type
   */
  public DType dtype(String name) {
    StoredTensor tensor = find(name);
    return tensor
        .dtype()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "tensor '%s' of %s has elements of type %s, which no tensor can hold"
                        .formatted(name, path, tensor.type())));
  }

  /**
   * Reads a tensor into new host memory.
   *
   * @param name its name
   * @throws IOException if the file cannot be read
   */
  public Tensor read(String name) throws IOException {
    Tensor target = Tensor.allocate(dtype(name), shape(name));
    read(name, target);
    return target;
  }

  /**
   * Reads a tensor into memory that exists.
   *
   * @param name its name
   * @param target a dense host tensor of the same type and shape
   * @throws IllegalArgumentException if type or shape differ
   * @throws IOException if the file cannot be read
   */
  public void read(String name, Tensor target) throws IOException {
    StoredTensor stored = find(name);
    if (target.dtype() != dtype(name) || !Shape.of(target.shape()).equals(stored.shape())) {
      throw new IllegalArgumentException(
          "tensor '%s' of %s is %s%s, not %s"
              .formatted(name, path, dtype(name).label(), stored.shape(), target.describe()));
    }
    if (!target.isContiguous() || !target.segment().isNative()) {
      Tensor copy = Tensor.allocate(target.dtype(), target.shape());
      read(name, copy);
      target.copyFrom(copy);
      return;
    }
    for (long start = 0; start < stored.byteSize(); start += FileRecord.PIECE) {
      long count = Math.min(FileRecord.PIECE, stored.byteSize() - start);
      input.read(stored.start() + start, target.segment().asSlice(start, count).asByteBuffer());
    }
  }

  private StoredTensor find(String name) {
    StoredTensor tensor = tensors.get(name);
    if (tensor == null) {
      throw new IllegalArgumentException(
          "%s has no tensor '%s'; it has %s".formatted(path, name, names()));
    }
    return tensor;
  }

  /** Closes the file. */
  @Override
  public void close() throws IOException {
    input.close();
  }
}
