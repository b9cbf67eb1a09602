package dev.tutti.cuda.ipc;

import dev.tutti.cuda.share.CounterFile;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** An allocator for the words of counter files; not thread-safe. */
final class IpcSlots {
  private final LongSupplier random;
  private final List<Entry> files = new ArrayList<>();

  /** A word in a counter file. */
  record Slot(CounterFile file, long nonce, int number) {}

  private static final class Entry {
    private final CounterFile file;
    private final long nonce;
    private final BitSet used = new BitSet(CounterFile.SLOTS);
    private final @Nullable SharedTensor[] shared = new @Nullable SharedTensor[CounterFile.SLOTS];

    Entry(CounterFile file, long nonce) {
      this.file = file;
      this.nonce = nonce;
    }
  }

  IpcSlots(LongSupplier random) {
    this.random = random;
  }

  /** Returns an unused word, from a new file if the existing ones are full. */
  Slot take() {
    Entry entry = null;
    for (Entry known : files) {
      if (known.used.cardinality() < CounterFile.SLOTS) {
        entry = known;
        break;
      }
    }
    if (entry == null) {
      long nonce = random.getAsLong();
      entry = new Entry(CounterFile.create(nonce), nonce);
      files.add(entry);
    }
    int slot = entry.used.nextClearBit(0);
    entry.used.set(slot);
    return new Slot(entry.file, entry.nonce, slot);
  }

  /** Records the tensor that a word counts. */
  void put(SharedTensor tensor) {
    entry(tensor.file).shared[tensor.slot] = tensor;
  }

  /**
   * Takes a word back, and closes its file if none of its words is used and it is not the last
   * file.
   */
  void giveBack(CounterFile file, int slot) {
    Entry entry = entry(file);
    entry.used.clear(slot);
    entry.shared[slot] = null;
    if (entry.used.isEmpty() && files.size() > 1) {
      files.remove(entry);
      file.close();
    }
  }

  private Entry entry(CounterFile file) {
    for (Entry entry : files) {
      if (entry.file.equals(file)) {
        return entry;
      }
    }
    throw new IllegalStateException("the counter file was closed");
  }

  /** Passes on the tensors that consumers released since the last call. */
  void drain(Consumer<SharedTensor> released) {
    for (Entry entry : List.copyOf(files)) {
      List<SharedTensor> found = new ArrayList<>();
      entry.file.drain(slot -> addTo(found, entry.shared[slot]));
      found.forEach(released);
    }
  }

  private static void addTo(List<SharedTensor> found, @Nullable SharedTensor tensor) {
    if (tensor != null) {
      found.add(tensor);
    }
  }

  /** Returns all tensors whose words are in use. */
  List<SharedTensor> all() {
    List<SharedTensor> found = new ArrayList<>();
    for (Entry entry : files) {
      entry.used.stream().forEach(slot -> addTo(found, entry.shared[slot]));
    }
    return found;
  }

  /** Returns the number of words in use. */
  int used() {
    return files.stream().mapToInt(entry -> entry.used.cardinality()).sum();
  }

  /** Returns the number of files. */
  int files() {
    return files.size();
  }

  /** Closes all files; consumers that have mapped them keep their mappings. */
  void close() {
    files.forEach(entry -> entry.file.close());
    files.clear();
  }
}
