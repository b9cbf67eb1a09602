package dev.tutti;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;

/**
 * The ranks of a group arranged in a grid with named dimensions, with a group along each dimension
 * (c10d: {@code DeviceMesh}). It creates the groups for data, tensor and pipeline parallelism in
 * one line:
 *
 * {@snippet file="GroupSnippetsTest.java" region="mesh"}
 *
 * <p>Ranks are laid out in row-major order, so neighboring ranks are adjacent in the last
 * dimension. Immutable. Any thread may call any method, but all ranks of the group must call {@link
 * #init} and {@link #flatten} in the same order.
 */
public final class DeviceMesh implements AutoCloseable {
  private final ProcessGroup all;
  private final List<Dimension> dimensions;
  private final boolean owner;

  /**
   * A dimension: its name and size, the distance between neighbors in ranks, and this rank's group
   * along it.
   */
  private record Dimension(String name, int size, int stride, ProcessGroup group) {
    int coordinate(int rank) {
      return rank / stride % size;
    }
  }

  private DeviceMesh(ProcessGroup all, List<Dimension> dimensions, boolean owner) {
    this.all = all;
    this.dimensions = List.copyOf(dimensions);
    this.owner = owner;
  }

  /**
   * Arranges all ranks of a group in a grid, and creates the groups along each dimension; all ranks
   * of the group must make the same call.
   *
   * @param group the group to arrange, with as many ranks as the grid
   * @param shape the size of each dimension, outermost first, each at least 1
   * @param names the names of the dimensions, all different
   * @return this rank's view of the grid
   * @throws IllegalArgumentException if the shape, the names and the group do not match
   * @throws CollectiveException if a rank does not make the call, or fails
   */
  public static DeviceMesh init(ProcessGroup group, int[] shape, String... names) {
    requireFitting(group, shape, names);
    List<Dimension> made = new ArrayList<>();
    try {
      int stride = group.size();
      for (int d = 0; d < shape.length; d++) {
        stride /= shape[d];
        made.add(dimension(group, names[d], shape[d], stride));
      }
    } catch (RuntimeException | Error e) {
      made.forEach(each -> each.group().close());
      throw e;
    }
    return new DeviceMesh(group, made, true);
  }

  private static Dimension dimension(ProcessGroup group, String name, int size, int stride) {
    int coordinate = group.rank() / stride % size;
    ProcessGroup along = joined(group.split(group.rank() - coordinate * stride, coordinate));
    return new Dimension(name, size, stride, along);
  }

  private static void requireFitting(ProcessGroup group, int[] shape, String[] names) {
    long ranks = 1;
    for (int size : shape) {
      if (size < 1) {
        throw new IllegalArgumentException(
            "each dimension needs at least one rank, not " + Arrays.toString(shape));
      }
      ranks = Math.min(Integer.MAX_VALUE, ranks * size);
    }
    if (shape.length == 0 || shape.length != names.length) {
      throw new IllegalArgumentException(
          "shape %s and names %s must have the same length, at least one"
              .formatted(Arrays.toString(shape), Arrays.toString(names)));
    }
    if (ranks != group.size()) {
      throw new IllegalArgumentException(
          "a mesh of shape %s does not fit the %d ranks of group %s"
              .formatted(Arrays.toString(shape), group.size(), group.name()));
    }
    if (new HashSet<>(Arrays.asList(names)).size() < names.length) {
      throw new IllegalArgumentException("names must be unique: " + Arrays.toString(names));
    }
  }

  /**
   * Divides a group into groups of neighboring ranks (c10d: {@code new_subgroups}); all ranks of
   * the group must make the same call.
   *
   * @param group the group to divide, whose size is a multiple of the size of each new group
   * @param size the number of ranks of each new group, at least 1
   * @return the new group that this rank is in
   * @throws IllegalArgumentException if the group cannot be divided that way
   * @throws CollectiveException if a rank does not make the call, or fails
   */
  public static ProcessGroup newSubgroups(ProcessGroup group, int size) {
    if (size < 1 || group.size() % size != 0) {
      throw new IllegalArgumentException(
          "group %s of %d ranks cannot be divided into groups of %d"
              .formatted(group.name(), group.size(), size));
    }
    return joined(group.split(group.rank() / size, group.rank()));
  }

  /**
   * Divides a group into groups of the given ranks (c10d: {@code new_subgroups_by_enumeration});
   * all ranks of the group must call it with the same lists.
   *
   * @param group the group to divide
   * @param ranks the ranks of each new group, in its order; each rank appears at most once
   * @return the new group that this rank is in, or empty if it is in none of the lists
   * @throws IllegalArgumentException if a list is empty, or a rank appears twice or is not in the
   *     group
   * @throws CollectiveException if a rank does not make the call, or fails
   */
  public static Optional<ProcessGroup> newSubgroups(ProcessGroup group, List<List<Integer>> ranks) {
    HashSet<Integer> seen = new HashSet<>();
    int color = -1;
    int key = 0;
    for (int i = 0; i < ranks.size(); i++) {
      List<Integer> list = ranks.get(i);
      if (list.isEmpty()) {
        throw new IllegalArgumentException("list " + i + " of " + ranks + " is empty");
      }
      for (int rank : list) {
        if (rank < 0 || rank >= group.size() || !seen.add(rank)) {
          throw new IllegalArgumentException(
              "rank %d in %s is listed twice or is not one of the %d ranks of group %s"
                  .formatted(rank, ranks, group.size(), group.name()));
        }
      }
      if (list.contains(group.rank())) {
        color = i;
        key = list.indexOf(group.rank());
      }
    }
    return group.split(color, key);
  }

  private static ProcessGroup joined(Optional<ProcessGroup> group) {
    return group.orElseThrow(
        () -> new IllegalStateException("a split with a non-negative color returned no group"));
  }

  /** Returns the number of dimensions. */
  public int dimensions() {
    return dimensions.size();
  }

  /** Returns the names of the dimensions, outermost first. */
  public List<String> names() {
    return dimensions.stream().map(Dimension::name).toList();
  }

  /** Returns the size of each dimension, outermost first. */
  public int[] shape() {
    return dimensions.stream().mapToInt(Dimension::size).toArray();
  }

  /**
   * Returns the size of a dimension.
   *
   * @param name the dimension's name
   * @throws IllegalArgumentException if there is no such dimension
   */
  public int size(String name) {
    return find(name).size();
  }

  /**
   * Returns this rank's position along a dimension, starting at 0, which is its rank in the group
   * along that dimension (c10d: {@code get_local_rank}).
   *
   * @param name the dimension's name
   * @throws IllegalArgumentException if there is no such dimension
   */
  public int coordinate(String name) {
    return find(name).coordinate(all.rank());
  }

  /**
   * Returns the group of the ranks that differ from this one only in the given dimension (c10d:
   * {@code get_group}).
   *
   * @param name the dimension's name
   * @throws IllegalArgumentException if there is no such dimension
   */
  public ProcessGroup group(String name) {
    return find(name).group();
  }

  /**
   * Returns the ranks of the grid in row-major order, as ranks of the group that was arranged. For
   * a slice, returns only the ranks of this rank's slice.
   */
  public List<Integer> ranks() {
    int first = all.rank();
    for (Dimension dimension : dimensions) {
      first -= dimension.coordinate(all.rank()) * dimension.stride();
    }
    List<Integer> ranks = List.of(first);
    for (Dimension dimension : dimensions) {
      List<Integer> more = new ArrayList<>();
      for (int rank : ranks) {
        for (int i = 0; i < dimension.size(); i++) {
          more.add(rank + i * dimension.stride());
        }
      }
      ranks = more;
    }
    return List.copyOf(ranks);
  }

  /**
   * Returns this rank's part of the grid along some of its dimensions, with the same groups. This
   * is a local call: no rank waits for another.
   *
   * @param names the names of the dimensions, all different, outermost first
   * @throws IllegalArgumentException if there is no such dimension, or a name is repeated
   */
  public DeviceMesh slice(String... names) {
    if (names.length == 0 || new HashSet<>(Arrays.asList(names)).size() < names.length) {
      throw new IllegalArgumentException(
          "a slice needs at least one dimension, and each only once, not "
              + Arrays.toString(names));
    }
    return new DeviceMesh(all, Arrays.stream(names).map(this::find).toList(), false);
  }

  /**
   * Creates a single group of all ranks of this grid or slice, in its order, for example to reduce
   * over both dimensions of {@code slice("dp", "cp")} (c10d: {@code _flatten}); all ranks of the
   * group that was arranged must make the same call.
   *
   * @param name the name of the result's only dimension
   * @return a one-dimensional grid, to be closed by the caller
   * @throws CollectiveException if a rank does not make the call, or fails
   */
  public DeviceMesh flatten(String name) {
    List<Integer> ranks = ranks();
    int place = ranks.indexOf(all.rank());
    ProcessGroup flat = joined(all.split(ranks.getFirst(), place));
    return new DeviceMesh(flat, List.of(new Dimension(name, ranks.size(), 1, flat)), true);
  }

  private Dimension find(String name) {
    for (Dimension dimension : dimensions) {
      if (dimension.name().equals(name)) {
        return dimension;
      }
    }
    throw new IllegalArgumentException(
        "no dimension '" + name + "'; the dimensions are " + names());
  }

  /** Closes the groups along the dimensions; on a slice, does nothing. */
  @Override
  public void close() {
    if (owner) {
      dimensions.forEach(each -> each.group().close());
    }
  }

  @Override
  public String toString() {
    return "DeviceMesh[" + names() + ", " + Arrays.toString(shape()) + ", rank " + all.rank() + "]";
  }
}
