package dev.tutti.cuda.collective;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.element.ElementKernel;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.kernels.CoalesceKernels;
import dev.tutti.kernels.Kernel;
import java.util.ArrayList;
import java.util.List;

/**
 * The coalescing of sparse tensors: enqueues its kernels into a stream, and holds the memory they
 * need until closed. That memory is used in stream order, so closing need not wait. Not
 * thread-safe.
 */
final class Coalescing implements AutoCloseable {
  private final CudaDevice device;
  private final CudaStream stream;
  private final List<DeviceBlock> blocks = new ArrayList<>();

  /**
   * The runs of equal places among sorted entries, as device addresses.
   *
   * @param entries the number of sorted entries
   * @param rows the row of each entry; 0 if the rows are in order
   * @param starts the start of each run
   * @param distinct the linear place of each run
   * @param count the number of runs, in 8 bytes
   */
  record Runs(long entries, long rows, long starts, long distinct, long count) {}

  private record Sorted(long keys, long rows) {}

  Coalescing(CudaDevice device, CudaStream stream) {
    this.device = device;
    this.stream = stream;
  }

  /** Allocates uninitialized memory. */
  long memory(long bytes) {
    DeviceBlock block = Parts.of(device).allocator().allocate(Math.max(1, bytes), Parts.of(stream));
    blocks.add(block);
    return block.address();
  }

  /**
   * Computes the linear places of entries.
   *
   * @param indices the indices of the entries
   * @param sizes the sizes of the sparse dimensions, 8 bytes each
   * @param outside 8 bytes that hold -1; receives the position, among the indices, of the first
   *     index that is out of range
   */
  long places(Tensor indices, long sizes, long outside) {
    long entries = indices.size(1);
    long keys = memory(entries * Long.BYTES);
    LaunchParameters parameters = new LaunchParameters(6);
    parameters.set(0, indices.segment().address());
    parameters.set(1, entries);
    parameters.set(2, sizes);
    parameters.set(3, (int) indices.size(0));
    parameters.set(4, keys);
    parameters.set(5, outside);
    launch(CoalesceKernels.places(), entries, parameters);
    return keys;
  }

  /**
   * Sorts entries by their places, and finds the runs of equal places.
   *
   * @param keys the linear places of the entries; overwritten
   * @param entries the number of entries
   * @param bits the number of significant bits in a place
   * @param count 8 bytes that receive the number of runs
   */
  Runs runs(long keys, long entries, int bits, long count) {
    int tiles = CoalesceKernels.tiles(entries);
    long counts = memory((long) CoalesceKernels.DIGITS * tiles * Integer.BYTES);
    Sorted sorted = sort(keys, entries, bits, counts);
    LaunchParameters found = new LaunchParameters(3);
    found.set(0, sorted.keys);
    found.set(1, (int) entries);
    found.set(2, counts);
    launch(CoalesceKernels.countRuns(), entries, found);
    scan(counts, tiles, count);
    long starts = memory(entries * Integer.BYTES);
    long distinct = memory(entries * Long.BYTES);
    LaunchParameters runs = new LaunchParameters(5);
    runs.set(0, sorted.keys);
    runs.set(1, (int) entries);
    runs.set(2, counts);
    runs.set(3, starts);
    runs.set(4, distinct);
    launch(CoalesceKernels.runs(), entries, runs);
    return new Runs(entries, sorted.rows, starts, distinct, count);
  }

  private Sorted sort(long keys, long entries, int bits, long counts) {
    if (bits == 0) {
      return new Sorted(keys, 0);
    }
    long otherKeys = memory(entries * Long.BYTES);
    long rows = memory(entries * Integer.BYTES);
    long otherRows = memory(entries * Integer.BYTES);
    Sorted from = new Sorted(keys, 0);
    Sorted to = new Sorted(otherKeys, otherRows);
    for (int shift = 0; shift < bits; shift += CoalesceKernels.DIGIT_BITS) {
      LaunchParameters digits = new LaunchParameters(4);
      digits.set(0, from.keys);
      digits.set(1, (int) entries);
      digits.set(2, shift);
      digits.set(3, counts);
      launch(CoalesceKernels.countDigits(), entries, digits);
      scan(counts, (long) CoalesceKernels.DIGITS * CoalesceKernels.tiles(entries), 0);
      LaunchParameters scatter = new LaunchParameters(7);
      scatter.set(0, from.keys);
      scatter.set(1, from.rows);
      scatter.set(2, (int) entries);
      scatter.set(3, shift);
      scatter.set(4, counts);
      scatter.set(5, to.keys);
      scatter.set(6, to.rows);
      launch(CoalesceKernels.scatter(), entries, scatter);
      Sorted spoilt = new Sorted(from.keys, from.rows == 0 ? rows : from.rows);
      from = to;
      to = spoilt;
    }
    return from;
  }

  private void scan(long values, long count, long total) {
    LaunchParameters parameters = new LaunchParameters(3);
    parameters.set(0, values);
    parameters.set(1, count);
    parameters.set(2, total);
    launch(CoalesceKernels.scan(), count, parameters);
  }

  /**
   * Sums the rows of each run.
   *
   * @param dtype the type of the values
   * @param runs the runs of the entries
   * @param values one row for each entry, in the order before sorting
   * @param rowLength the number of elements in a row
   * @param out receives one row for each run
   */
  void sum(DType dtype, Runs runs, long values, long rowLength, long out) {
    long columns = rowLength * CoalesceKernels.columns(dtype);
    LaunchParameters parameters = new LaunchParameters(7);
    parameters.set(0, values);
    parameters.set(1, columns);
    parameters.set(2, runs.rows);
    parameters.set(3, runs.starts);
    parameters.set(4, runs.count);
    parameters.set(5, runs.entries);
    parameters.set(6, out);
    launch(CoalesceKernels.sum(dtype), runs.entries * columns, parameters);
  }

  /**
   * Computes the coordinates of the runs.
   *
   * @param runs the runs
   * @param count the number of runs
   * @param sizes the sizes of the sparse dimensions, 8 bytes each
   * @param dims the number of sparse dimensions
   * @param out receives one row for each dimension
   */
  void coordinates(Runs runs, long count, long sizes, int dims, long out) {
    LaunchParameters parameters = new LaunchParameters(5);
    parameters.set(0, runs.distinct);
    parameters.set(1, count);
    parameters.set(2, sizes);
    parameters.set(3, dims);
    parameters.set(4, out);
    launch(CoalesceKernels.coordinates(), count, parameters);
  }

  private void launch(Kernel kernel, long items, LaunchParameters parameters) {
    ElementKernel.enqueue(stream, kernel, CoalesceKernels.launch(kernel, items), parameters);
  }

  @Override
  public void close() {
    blocks.forEach(Parts.of(device).allocator()::free);
    blocks.clear();
  }
}
