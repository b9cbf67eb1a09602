package dev.tutti.cli.run;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The processors of each rank of a host: equal shares of its cores, in the order of its NUMA nodes,
 * so that near ranks are near each other.
 */
final class Binding {
  /** Leaves all ranks where the system puts them. */
  static final Binding NONE = new Binding(List.of());

  private static final String NO_BINDING = "none";
  private static final Path SYSTEM = Path.of("/sys/devices/system");

  private final List<BitSet> shares;

  private Binding(List<BitSet> shares) {
    this.shares = shares;
  }

  /**
   * Chooses the processors of this host's ranks.
   *
   * @param kind "none", "core" or "numa"
   * @param ranks the number of ranks on this host
   * @param allowed the processors that this process may use
   * @throws IllegalArgumentException if there is no such kind, or it is unknown which processors
   *     are allowed
   */
  static Binding choose(String kind, int ranks, BitSet allowed) {
    return choose(kind, ranks, allowed, SYSTEM);
  }

  /** Chooses them on a host that its system describes in a folder. */
  static Binding choose(String kind, int ranks, BitSet allowed, Path system) {
    boolean wholeNodes = kind.equals("numa");
    if (kind.equals(NO_BINDING)) {
      return NONE;
    }
    if (!wholeNodes && !kind.equals("core")) {
      throw new IllegalArgumentException("--bind must be core, numa or none, not '" + kind + "'");
    }
    if (allowed.isEmpty()) {
      throw new IllegalArgumentException("--bind=" + kind + " works only on Linux");
    }
    List<BitSet> cores = new ArrayList<>();
    List<BitSet> nodeOfCore = new ArrayList<>();
    for (BitSet node : nodes(allowed, system)) {
      for (BitSet core : cores(node, system)) {
        cores.add(core);
        nodeOfCore.add(node);
      }
    }
    List<BitSet> shares = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int first = (int) ((long) rank * cores.size() / ranks);
      int end = Math.max(first + 1, (int) ((rank + 1L) * cores.size() / ranks));
      BitSet share = new BitSet();
      (wholeNodes ? nodeOfCore : cores).subList(first, end).forEach(share::or);
      shares.add(share);
    }
    return new Binding(List.copyOf(shares));
  }

  /** Returns the processors of a rank, by number; none if it is not bound. */
  BitSet of(int local) {
    return shares.isEmpty() ? new BitSet() : shares.get(local % shares.size());
  }

  /** Returns the processors of each NUMA node; all of them if the system does not say. */
  private static List<BitSet> nodes(BitSet allowed, Path system) {
    Map<Integer, BitSet> nodes = new TreeMap<>();
    BitSet rest = (BitSet) allowed.clone();
    try (DirectoryStream<Path> found =
        Files.newDirectoryStream(system.resolve("node"), "node[0-9]*")) {
      for (Path node : found) {
        BitSet own = list(node.resolve("cpulist"));
        own.and(rest);
        rest.andNot(own);
        nodes.put(Integer.parseInt(node.getFileName().toString().substring(4)), own);
      }
    } catch (IOException e) {
      return List.of(allowed);
    }
    List<BitSet> all = new ArrayList<>(nodes.values());
    all.add(rest);
    all.removeIf(BitSet::isEmpty);
    return all;
  }

  /** Returns the processors of each core; each is a core if the system does not say. */
  private static List<BitSet> cores(BitSet node, Path system) {
    List<BitSet> cores = new ArrayList<>();
    BitSet rest = (BitSet) node.clone();
    for (int cpu = rest.nextSetBit(0); cpu >= 0; cpu = rest.nextSetBit(0)) {
      BitSet core = new BitSet();
      try {
        core = list(system.resolve("cpu/cpu" + cpu + "/topology/thread_siblings_list"));
      } catch (IOException e) {
        // The processor itself is what is left.
      }
      core.and(rest);
      core.set(cpu);
      rest.andNot(core);
      cores.add(core);
    }
    return Collections.unmodifiableList(cores);
  }

  /** Reads a list such as 0-3,8. */
  private static BitSet list(Path file) throws IOException {
    BitSet numbers = new BitSet();
    for (String range : Files.readString(file).strip().split(",")) {
      String[] ends = range.split("-", 2);
      if (!ends[0].isEmpty()) {
        int first = Integer.parseInt(ends[0]);
        numbers.set(first, Integer.parseInt(ends[ends.length - 1]) + 1);
      }
    }
    return numbers;
  }
}
