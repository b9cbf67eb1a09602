package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.checkpoint.Contents.Copies;
import dev.tutti.checkpoint.Contents.Parts;
import dev.tutti.checkpoint.Contents.Section;
import dev.tutti.checkpoint.Contents.Value;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.checkpoint.folder.Piece;
import dev.tutti.checkpoint.folder.PieceBatch;
import dev.tutti.checkpoint.folder.PieceReader;
import dev.tutti.checkpoint.folder.PieceStream;
import dev.tutti.checkpoint.format.JsonText;
import dev.tutti.checkpoint.format.MalformedException;
import dev.tutti.checkpoint.format.Manifest;
import dev.tutti.checkpoint.format.StoredRange;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** One load: all ranks check that everything fits before any of them changes a tensor. */
final class LoadRun {
  private static final long NONE = -1;

  /** How many ranks may read what they share with others, such as parts, from the device. */
  private static final int DIRECT_RANKS = 4;

  private final ProcessGroup group;
  private final Agreement agreement;
  private final CheckpointFolder folder;
  private final Contents contents;
  private final @Nullable RuntimeException before;

  /**
   * Creates a load.
   *
   * @param collectives runs collectives on a thread that nobody interrupts
   * @param before the failure of the save before, if this rank did not await it
   */
  LoadRun(
      ProcessGroup group,
      Executor collectives,
      CheckpointFolder folder,
      Contents contents,
      @Nullable RuntimeException before) {
    this.before = before;
    this.group = group;
    this.agreement = new Agreement(group, folder.root(), collectives);
    this.folder = folder;
    this.contents = contents;
  }

  /** Loads the latest checkpoint, if there is one, and returns its step. */
  OptionalLong latest() {
    requireSaved("loading the latest checkpoint");
    byte[] chosen =
        agreement.onFirst(
            "loading the latest checkpoint", () -> bytes(folder.latest().orElse(NONE)));
    long step = ByteBuffer.wrap(chosen).getLong();
    if (step == NONE) {
      return OptionalLong.empty();
    }
    loadSaved(step);
    return OptionalLong.of(step);
  }

  private void requireSaved(String what) {
    List<byte[]> all =
        agreement.onAll(
            what,
            () -> {
              if (before != null) {
                throw before;
              }
              return new byte[0];
            });
    for (int rank = 0; rank < all.size(); rank++) {
      if (all.get(rank).length > 0) {
        throw new CheckpointException(
            "%s failed: rank %d does not load; call the same methods on all ranks"
                .formatted(what, rank),
            null);
      }
    }
  }

  private static byte[] bytes(long step) {
    return ByteBuffer.allocate(Long.BYTES).putLong(step).array();
  }

  /** Loads a checkpoint. */
  void load(long step) {
    requireSaved("loading step " + step);
    loadSaved(step);
  }

  private void loadSaved(long step) {
    String what = "loading step " + step;
    Prepared[] prepared = new Prepared[1];
    List<byte[]> planned =
        agreement.onAll(
            what,
            () -> {
              prepared[0] = prepare(step);
              return describe(prepared[0].plan.manifest()).getBytes(StandardCharsets.UTF_8);
            });
    Prepared load = Objects.requireNonNull(prepared[0]);
    Manifest manifest = load.plan.manifest();
    problem(step, planned, manifest)
        .ifPresent(
            problem -> {
              throw new CheckpointException(what + " failed: " + problem, null);
            });
    agreement.onAll(
        what + ", with tensors changed in part,",
        () -> {
          load.shared.run(what);
          readOwn(load.own, load.plan);
          load.plan.finish();
          return new byte[0];
        });
    agreement.onAll(
        what + ", with all tensors loaded,",
        () -> {
          restore(manifest);
          return new byte[0];
        });
  }

  /** A load of which all parts fit, with the memory that it needs. */
  private record Prepared(LoadPlan plan, SharedRead shared, PieceReader own) {}

  private Prepared prepare(long step) throws IOException {
    Manifest manifest = folder.manifest(step);
    LoadPlan plan;
    try {
      plan = new LoadPlan(manifest, contents);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(withRemedy(step, String.valueOf(e.getMessage())), e);
    }
    PieceReader direct = reader(step, manifest, false);
    PieceReader own = reader(step, manifest, group.size() > DIRECT_RANKS);
    direct.requireLengths(plan.shared.files());
    own.requireLengths(plan.own.files());
    return new Prepared(plan, new SharedRead(group, agreement, direct, plan.shared), own);
  }

  private String withRemedy(long step, String problem) {
    return "%s; what was saved is listed by: tutti checkpoint show --step %d %s"
        .formatted(problem, step, folder.published(step).getParent());
  }

  private PieceReader reader(long step, Manifest manifest, boolean cached) {
    return new PieceReader(folder.disk(), folder.published(step), manifest.files(), cached);
  }

  /** Describes the manifest that this rank sees, its sections of copies, and its parts' names. */
  private String describe(Manifest manifest) {
    SortedMap<String, String> copies = new TreeMap<>();
    List<Object> names = new ArrayList<>();
    for (Section section : contents.sections()) {
      switch (section) {
        case Copies whole -> copies.put(whole.name(), Shares.describe(whole));
        case Parts parts ->
            parts.state().parts().forEach(part -> names.add(List.of(parts.name(), part.name())));
        case Value value -> {}
      }
    }
    return JsonText.write(List.of((long) Arrays.hashCode(manifest.encode()), copies, names));
  }

  /**
   * Returns what the descriptions of all ranks show: another folder, other copies, or parts that
   * nobody has.
   */
  private Optional<String> problem(long step, List<byte[]> planned, Manifest manifest) {
    Set<Object> manifests = new HashSet<>();
    List<Object> copies = new ArrayList<>();
    Set<Object> held = new HashSet<>();
    for (byte[] each : planned) {
      try {
        List<?> fields = (List<?>) Objects.requireNonNull(JsonText.read(ByteBuffer.wrap(each)));
        manifests.add(fields.get(0));
        copies.add(fields.get(1));
        held.addAll((List<?>) fields.get(2));
      } catch (MalformedException e) {
        throw new IllegalStateException("another rank's description is " + e.getMessage(), e);
      }
    }
    if (manifests.size() > 1) {
      return Optional.of(folder.published(step) + " differs between ranks");
    }
    for (int rank = 1; rank < copies.size(); rank++) {
      if (!copies.get(rank).equals(copies.getFirst())) {
        return Optional.of(
            "rank %d loads the copies %s, but rank 0 %s"
                .formatted(rank, copies.get(rank), copies.getFirst()));
      }
    }
    for (Section section : contents.sections()) {
      for (StoredRange range : manifest.ranges()) {
        if (section instanceof Parts
            && range.section().equals(section.name())
            && !held.contains(List.of(range.section(), range.tensor()))) {
          return Optional.of(
              withRemedy(
                  step,
                  "the checkpoint has a tensor that no rank of the program has, '%s', for section '%s'"
                      .formatted(range.tensor(), range.section())));
        }
      }
    }
    return Optional.empty();
  }

  /** Reads what this rank alone needs; ranks that need the same begin at different places. */
  private void readOwn(PieceReader reader, LoadPlan plan) throws IOException {
    List<Piece> pieces = new ArrayList<>(plan.own.pieces());
    Collections.rotate(pieces, -(int) ((long) pieces.size() * group.rank() / group.size()));
    List<PieceBatch> batches = PieceBatch.of(reader, pieces);
    try (PieceStream stream = new PieceStream(reader, batches)) {
      for (PieceBatch batch : batches) {
        MemorySegment memory = stream.next();
        batch.forEach(memory, plan.own::deliver);
        stream.use(memory);
      }
    }
  }

  private void restore(Manifest manifest) {
    for (Section section : contents.sections()) {
      switch (section) {
        case Copies copies -> {}
        case Parts parts ->
            parts.state().restored(Objects.requireNonNull(manifest.counters().get(parts.name())));
        case Value value ->
            value.restore().accept(Objects.requireNonNull(manifest.values().get(value.name())));
      }
    }
  }
}
