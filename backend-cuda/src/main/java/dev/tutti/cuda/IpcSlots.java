package dev.tutti.cuda;

import dev.tutti.cuda.share.CounterFile;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Hands out the words of files of counters, again and again; one thread at a time. */
final class IpcSlots {
  private final LongSupplier random;
  private final List<Entry> files = new ArrayList<>();

  /** A word of a file. */
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

  /** Returns a word that nobody uses, of a new file if there is none. */
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

  /** Says what a word counts. */
  void put(SharedTensor tensor) {
    entry(tensor.file()).shared[tensor.slot()] = tensor;
  }

  /** Takes a word back, and closes the file if it is not the last one and no word is used. */
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
    throw new IllegalStateException("the file of counters was closed");
  }

  /** Hands out those that consumers released since the last call. */
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

  /** Returns all that are in use. */
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

  /** Closes all files; consumers that have them mapped keep them. */
  void close() {
    files.forEach(entry -> entry.file.close());
    files.clear();
  }
}
