package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.cuda.driver.LinkMatrix;
import dev.tutti.kernels.PeerLinks;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Says where a rank runs.
 *
 * @param host one text for all processes of a running kernel
 * @param process one text for all ranks of a process
 * @param pciBusId the rank's device
 * @param allowsOverlap whether this rank takes ranks that share a device
 * @param multiprocessors of the device, how many
 * @param choices settings that have to be the same on all ranks, in one line
 * @param links of the device, as {@link LinkMatrix#write} writes them
 */
public record PeerInfo(
    String host,
    String process,
    String pciBusId,
    boolean allowsOverlap,
    int multiprocessors,
    String choices,
    String links) {
  private static final String PROCESS = UUID.randomUUID().toString();
  private static final String SEPARATOR = "\n";

  /**
   * Describes a rank of this process.
   *
   * @param pciBusId its device
   * @param allowsOverlap whether ranks may share a device
   * @param multiprocessors of the device, how many
   * @param choices settings that have to be the same on all ranks, in one line
   * @param links of the device, as {@link LinkMatrix#write} writes them
   */
  public static PeerInfo here(
      String pciBusId, boolean allowsOverlap, int multiprocessors, String choices, String links) {
    return new PeerInfo(
        bootId(), PROCESS, pciBusId, allowsOverlap, multiprocessors, choices, links);
  }

  private static String bootId() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).trim();
    } catch (java.io.IOException e) {
      return "unknown";
    }
  }

  /**
   * Tells all ranks where each one runs.
   *
   * @param exchange of the group
   * @param own this rank
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return the ranks in their order
   * @throws FarRanksException on all ranks, if they are on several hosts
   * @throws BackendException on all ranks, if they share a device without leave, or their choices
   *     differ
   */
  public static List<PeerInfo> meet(StoreExchange exchange, PeerInfo own, long deadlineNanos) {
    List<PeerInfo> all = new ArrayList<>();
    for (byte[] bytes : exchange.allGather(own.encode(), deadlineNanos)) {
      all.add(decode(bytes));
    }
    requireOneHost(all, exchange.rank());
    requireLeave(all, exchange.rank());
    requireOneChoice(all, exchange.rank());
    return all;
  }

  private byte[] encode() {
    return String.join(
            SEPARATOR,
            host,
            process,
            pciBusId,
            String.valueOf(allowsOverlap),
            String.valueOf(multiprocessors),
            choices,
            links)
        .getBytes(StandardCharsets.UTF_8);
  }

  private static PeerInfo decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, -1);
    try {
      return new PeerInfo(
          parts[0],
          parts[1],
          parts[2],
          Boolean.parseBoolean(parts[3]),
          Integer.parseInt(parts[4]),
          parts[5],
          parts[6]);
    } catch (ArrayIndexOutOfBoundsException | NumberFormatException e) {
      throw new BackendException(
          "a peer describes itself in another form than this version does", e);
    }
  }

  private static void requireOneHost(List<PeerInfo> all, int rank) {
    for (int r = 0; r < all.size(); r++) {
      if (!all.get(r).host.equals(all.get(0).host)) {
        throw new FarRanksException(
            "rank "
                + rank
                + ": rank "
                + r
                + " runs on another host than rank 0, but the ranks of a group on CUDA devices must"
                + " share one");
      }
    }
  }

  private static void requireOneChoice(List<PeerInfo> all, int rank) {
    for (int r = 0; r < all.size(); r++) {
      if (!all.get(r).choices.equals(all.get(0).choices)) {
        throw new BackendException(
            "rank "
                + rank
                + ": rank "
                + r
                + " has "
                + all.get(r).choices
                + ", but rank 0 has "
                + all.get(0).choices
                + "; give all ranks the same");
      }
    }
  }

  private static void requireLeave(List<PeerInfo> all, int rank) {
    Map<String, Integer> first = new HashMap<>();
    for (int r = 0; r < all.size(); r++) {
      Integer other = first.putIfAbsent(all.get(r).pciBusId, r);
      if (other != null && !all.stream().allMatch(PeerInfo::allowsOverlap)) {
        throw new BackendException(
            "rank "
                + rank
                + ": ranks "
                + other
                + " and "
                + r
                + " have the same device "
                + all.get(r).pciBusId
                + "; give each rank its own, or set TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES=1 on"
                + " all ranks");
      }
    }
  }

  /** Returns what the slowest two devices are connected by; the same on all ranks. */
  public static PeerLinks slowestLinks(List<PeerInfo> all) {
    return LinkMatrix.read(
            all.stream().map(PeerInfo::pciBusId).toList(),
            all.stream().map(PeerInfo::links).toList())
        .slowest();
  }

  /** Returns how many multiprocessors the smallest device has. */
  public static int leastMultiprocessors(List<PeerInfo> all) {
    return all.stream().mapToInt(PeerInfo::multiprocessors).min().orElse(0);
  }

  /** Returns the greatest number of ranks that one device has. */
  public static int mostOnOneDevice(List<PeerInfo> all) {
    Map<String, Integer> counts = new HashMap<>();
    all.forEach(each -> counts.merge(each.pciBusId, 1, Integer::sum));
    return counts.values().stream().mapToInt(Integer::intValue).max().orElse(0);
  }
}
