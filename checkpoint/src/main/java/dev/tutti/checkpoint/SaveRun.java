package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.checkpoint.folder.RangeWriter;
import dev.tutti.checkpoint.folder.WrittenRange;
import dev.tutti.checkpoint.format.FileRecord;
import dev.tutti.checkpoint.format.JsonText;
import dev.tutti.checkpoint.format.Manifest;
import dev.tutti.checkpoint.format.StoredRange;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** One save: five things that all ranks do together, of which a failure of one fails all. */
final class SaveRun {
  private static final System.Logger LOG = System.getLogger(SaveRun.class.getName());
  private static final SecureRandom RANDOM = new SecureRandom();

  private final ProcessGroup group;
  private final Agreement agreement;
  private final CheckpointFolder folder;
  private final int kept;
  private final long step;
  private final Supplier<Snapshot> source;
  private final Runnable copies;
  private final String what;

  /** The folder that rank 0 created, to which all ranks write. */
  private @Nullable Path begun;

  /**
   * Creates a save.
   *
   * @param source returns what this rank saves, or throws why it cannot
   * @param copies copies what was not copied yet
   */
  SaveRun(
      ProcessGroup group,
      CheckpointFolder folder,
      int kept,
      long step,
      Supplier<Snapshot> source,
      Runnable copies) {
    this.group = group;
    this.agreement = new Agreement(group, folder.root(), Runnable::run);
    this.folder = folder;
    this.kept = kept;
    this.step = step;
    this.source = source;
    this.copies = copies;
    this.what = "saving step " + step;
  }

  /** Saves the snapshot; when it returns, the checkpoint is published on all ranks. */
  void run() {
    Division division =
        new Division(
            what,
            agreement.onAll(
                what,
                () -> {
                  byte[] description = Division.describe(step, source.get());
                  copies.run();
                  return description;
                }));
    Snapshot snapshot = source.get();
    Optional<String> problem = division.problem();
    if (problem.isPresent()) {
      throw new CheckpointException(
          "%s failed: %s%s; give all ranks the same contents; nothing was written to %s"
              .formatted(what, problem.get(), difference(snapshot), folder.root()),
          null);
    }
    byte[] nonce = agreement.onFirst(what, this::begin);
    Path saving = folder.saving(step, ByteBuffer.wrap(nonce).getLong());
    List<byte[]> written = agreement.onAll(what, () -> write(saving, division, snapshot).encode());
    agreement.onFirst(what, () -> publish(saving, written, snapshot));
  }

  /** Compares the copies of all ranks, of which the division has digests. */
  private String difference(Snapshot snapshot) {
    return Shares.difference(
            agreement.onAll(what, () -> Shares.list(snapshot.replicated().values())))
        .map(text -> ": " + text)
        .orElse("");
  }

  private byte[] begin() throws IOException {
    long nonce = RANDOM.nextLong();
    begun = folder.begin(step, nonce);
    return ByteBuffer.allocate(Long.BYTES).putLong(nonce).array();
  }

  private Manifest write(Path saving, Division division, Snapshot snapshot) throws IOException {
    List<FileRecord> files = new ArrayList<>();
    List<StoredRange> stored = new ArrayList<>();
    for (Map.Entry<String, List<WrittenRange>> section : snapshot.ranges().entrySet()) {
      String name = section.getKey();
      List<WrittenRange> ranges = section.getValue();
      if (!snapshot.replicated().containsKey(name)) {
        ranges = division.written(name, ranges, group.rank());
      }
      String file = "%s-%05d-of-%05d.safetensors".formatted(name, group.rank() + 1, group.size());
      files.add(
          RangeWriter.write(
              folder.disk(), saving.resolve(file), name, ranges, files.size(), stored));
    }
    folder.disk().forceFolder(saving);
    return new Manifest(step, group.size(), files, stored, snapshot.counters(), snapshot.values());
  }

  private byte[] publish(Path saving, List<byte[]> written, Snapshot snapshot) throws IOException {
    List<Manifest> parts = new ArrayList<>();
    for (byte[] part : written) {
      parts.add(Manifest.decode(part));
    }
    Manifest manifest = Manifest.join(parts);
    for (String section : snapshot.replicated().keySet()) {
      String name = section + ".safetensors.index.json";
      byte[] index = index(section, manifest).getBytes(StandardCharsets.UTF_8);
      folder.writeForced(saving.resolve(name), ByteBuffer.wrap(index));
      manifest = manifest.with(FileRecord.of(name, index));
    }
    folder.publish(saving, manifest);
    try {
      folder.keep(kept);
    } catch (IOException e) {
      LOG.log(
          Level.WARNING,
          "step {0} is saved, but older checkpoints cannot be deleted: {1}",
          String.valueOf(step),
          e);
    }
    return new byte[0];
  }

  /** Returns the index by which Python finds a tensor in one of several files. */
  private static String index(String section, Manifest manifest) {
    SortedMap<String, String> files = new TreeMap<>();
    long bytes = 0;
    for (StoredRange range : manifest.ranges()) {
      if (range.section().equals(section)) {
        files.put(range.tensor(), manifest.files().get(range.file()).name());
        bytes += range.byteSize();
      }
    }
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("metadata", Map.of("total_size", bytes));
    json.put("weight_map", files);
    return JsonText.write(json) + "\n";
  }

  /** Deletes what a failed save has written, as far as possible; the next job sweeps the rest. */
  void discard() {
    if (begun != null) {
      try {
        folder.disk().delete(begun);
      } catch (IOException e) {
        // The exception that is on its way says more.
      }
    }
  }
}
