package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.format.Safetensors;
import dev.tutti.state.ShardedState;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * What a checkpoint saves and loads: named sections, alike on all ranks.
 *
 * <p>Immutable; each method returns new contents with one section more. The tensors and objects are
 * read when a checkpoint is saved, and changed when one is loaded.
 */
public final class Contents {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}");
  private static final Contents NONE = new Contents(List.of());

  private final List<Section> sections;

  /** A section: its name and where its content is. */
  sealed interface Section {
    String name();
  }

  /** Tensors that are alike on all ranks. */
  record Copies(String name, List<String> tensorNames, List<Tensor> tensors) implements Section {}

  /** An object that is divided among the ranks. */
  record Parts(String name, ShardedState state) implements Section {}

  /** A text of each rank. */
  record Value(String name, Supplier<String> value, Consumer<List<String>> restore)
      implements Section {}

  private Contents(List<Section> sections) {
    this.sections = sections;
  }

  /** Returns contents without a section. */
  public static Contents of() {
    return NONE;
  }

  /**
   * Adds tensors that have the same elements on all ranks, such as the parameters of a model. Each
   * rank writes its share of them, as whole tensors under their own names; when a checkpoint is
   * loaded, each rank reads a share, and broadcasts it to the others.
   *
   * @param section the name of the section, also of its files: letters, digits, '_', '.', '-'
   * @param names a name for each tensor, such as {@code layer1.weight}
   * @param tensors dense tensors, which a load overwrites; those on a device are contiguous
   * @throws IllegalArgumentException if names are missing, occur twice or are {@code __metadata__},
   *     or a tensor is sparse, of type complex128, which safetensors files do not have, or on a
   *     device and not contiguous, or no module on the class path has tensors of that device
   */
  public Contents copies(String section, List<String> names, List<Tensor> tensors) {
    if (names.size() != tensors.size()) {
      throw new IllegalArgumentException(
          "section '%s' has %d names for %d tensors"
              .formatted(section, names.size(), tensors.size()));
    }
    Set<String> distinct = new HashSet<>();
    for (int i = 0; i < names.size(); i++) {
      if (!distinct.add(names.get(i))) {
        throw new IllegalArgumentException(
            "section '%s' has two tensors named '%s'".formatted(section, names.get(i)));
      }
      requireStorable(section, names.get(i), tensors.get(i));
    }
    return with(new Copies(section, List.copyOf(names), List.copyOf(tensors)));
  }

  /**
   * Adds an object of which each rank holds a part, such as a sharded optimizer. Each rank writes
   * its part; when a checkpoint is loaded, each rank reads what it holds then, from whichever files
   * have it.
   *
   * @param section the name of the section, also of its files: letters, digits, '_', '.', '-'
   * @param state the object
   */
  public Contents parts(String section, ShardedState state) {
    return with(new Parts(section, Objects.requireNonNull(state, "state")));
  }

  /**
   * Adds a text of each rank, such as the position of its sampler.
   *
   * @param section the name of the section
   * @param value returns this rank's text when a checkpoint is saved
   * @param restore takes the texts of all ranks that saved, in the order of ranks, when a
   *     checkpoint is loaded; there may be more or fewer than ranks now
   */
  public Contents value(String section, Supplier<String> value, Consumer<List<String>> restore) {
    return with(
        new Value(
            section,
            Objects.requireNonNull(value, "value"),
            Objects.requireNonNull(restore, "restore")));
  }

  static void requireStorable(String section, String name, Tensor tensor) {
    if (name.equals(Safetensors.METADATA)) {
      throw new IllegalArgumentException(
          "a tensor of section '%s' is named '%s', which safetensors files use for something else"
              .formatted(section, name));
    }
    if (tensor.isSparse()
        || !Safetensors.supports(tensor.dtype())
        || (!tensor.device().isCpu() && !tensor.isContiguous())) {
      throw new IllegalArgumentException(
          ("tensor '%s' of section '%s' must be dense, of a type that safetensors files have, and"
                  + " contiguous if it is on a device, not %s")
              .formatted(name, section, tensor.describe()));
    }
    if (!HostCopy.supports(tensor.device())) {
      throw new IllegalArgumentException(
          "tensor '%s' of section '%s' is on %s, and no module on the class path has tensors there"
              .formatted(name, section, tensor.device()));
    }
  }

  private Contents with(Section section) {
    if (!NAME.matcher(section.name()).matches()) {
      throw new IllegalArgumentException(
          "a section's name must consist of at most 200 letters, digits, '_', '.' and '-', and"
              + " begin with none of the last two: '"
              + section.name()
              + "'");
    }
    if (sections.stream().anyMatch(other -> other.name().equals(section.name()))) {
      throw new IllegalArgumentException("there are two sections named '" + section.name() + "'");
    }
    List<Section> all = new ArrayList<>(sections);
    all.add(section);
    return new Contents(List.copyOf(all));
  }

  List<Section> sections() {
    return sections;
  }
}
