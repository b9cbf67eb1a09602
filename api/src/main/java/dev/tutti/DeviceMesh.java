package dev.tutti;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;

/**
 * Arranges the ranks of a group in a grid with named dimensions, and has a group along each (c10d:
 * {@code DeviceMesh}). So the groups of data, tensor and pipeline parallelism are one line:
 *
 * {@snippet file="GroupSnippetsTest.java" region="mesh"}
 *
 * <p>Ranks lie in row-major order: the last dimension has neighboring ranks. Immutable; any thread
 * may call any method, and all ranks of the group call {@link #init} and {@link #flatten} in the
 * same order.
 */
public final class DeviceMesh implements AutoCloseable {
  private final ProcessGroup all;
  private final List<Dimension> dimensions;
  private final boolean owner;

  /** One dimension: its name and size, the distance of neighbors in ranks, and the own group. */
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
   * Arranges all ranks of a group, and makes the groups along each dimension; all ranks of the
   * group call it alike.
   *
   * @param group has as many ranks as the grid
   * @param shape the size of each dimension, outermost first, from 1
   * @param names of the dimensions, each another
   * @return this rank's view of the grid
   * @throws IllegalArgumentException if shape, names and group do not fit each other
   * @throws CollectiveException if the ranks do not come, or one fails
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
          "shape %s and names %s must have equally many dimensions, at least one"
              .formatted(Arrays.toString(shape), Arrays.toString(names)));
    }
    if (ranks != group.size()) {
      throw new IllegalArgumentException(
          "a grid of %s does not have the %d ranks of group %s"
              .formatted(Arrays.toString(shape), group.size(), group.name()));
    }
    if (new HashSet<>(Arrays.asList(names)).size() < names.length) {
      throw new IllegalArgumentException("names must differ: " + Arrays.toString(names));
    }
  }

  /**
   * Divides a group into groups of neighboring ranks (c10d: {@code new_subgroups}); all ranks of
   * the group call it alike.
   *
   * @param group has a multiple of the ranks of each new one
   * @param size ranks of each new group, from 1
   * @return the new group of this rank
   * @throws IllegalArgumentException if the group cannot be divided so
   * @throws CollectiveException if the ranks do not come, or one fails
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
   * Divides a group into groups of given ranks (c10d: {@code new_subgroups_by_enumeration}); all
   * ranks of the group call it with the same lists.
   *
   * @param group has the ranks
   * @param ranks of each new group in its order, each rank at most once
   * @return the new group of this rank, or empty where no list has it
   * @throws IllegalArgumentException if a list is empty, or a rank is in two or not of the group
   * @throws CollectiveException if the ranks do not come, or one fails
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
              "rank %d in %s is there twice, or none of the %d of group %s"
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
    return group.orElseThrow(() -> new IllegalStateException("a color from 0 on gave no group"));
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
   * @param name of the dimension
   * @throws IllegalArgumentException if there is none such
   */
  public int size(String name) {
    return find(name).size();
  }

  /**
   * Returns this rank's place in a dimension, from 0, which is its rank in the group along it
   * (c10d: {@code get_local_rank}).
   *
   * @param name of the dimension
   * @throws IllegalArgumentException if there is none such
   */
  public int coordinate(String name) {
    return find(name).coordinate(all.rank());
  }

  /**
   * Returns the group of the ranks that differ from this one in a dimension alone (c10d: {@code
   * get_group}).
   *
   * @param name of the dimension
   * @throws IllegalArgumentException if there is none such
   */
  public ProcessGroup group(String name) {
    return find(name).group();
  }

  /**
   * Returns the ranks of the grid in row-major order, as ranks of the group that was arranged; of a
   * slice those of this rank's slice.
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
   * Returns this rank's part of the grid along some dimensions, with the same groups; no rank waits
   * for another one.
   *
   * @param names of the dimensions, each another, outermost first
   * @throws IllegalArgumentException if one is not there or is there twice
   */
  public DeviceMesh slice(String... names) {
    if (names.length == 0 || new HashSet<>(Arrays.asList(names)).size() < names.length) {
      throw new IllegalArgumentException(
          "a slice needs dimensions, each once, not " + Arrays.toString(names));
    }
    return new DeviceMesh(all, Arrays.stream(names).map(this::find).toList(), false);
  }

  /**
   * Makes one group of all ranks of this grid or slice, in its order, as of {@code slice("dp",
   * "cp")} to reduce over both (c10d: {@code _flatten}); all ranks of the group that was arranged
   * call it alike.
   *
   * @param name of the only dimension that the result has
   * @return a grid of one dimension, which the caller closes
   * @throws CollectiveException if the ranks do not come, or one fails
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
    throw new IllegalArgumentException("no dimension '" + name + "'; there are " + names());
  }

  /** Closes the groups along the dimensions; of a slice does nothing. */
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
