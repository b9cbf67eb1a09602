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
 * Where a rank runs.
 *
 * @param host a string that is the same for all processes on one running kernel
 * @param process a string that is the same for all ranks in one process
 * @param pciBusId the PCI bus ID of the rank's device
 * @param allowsOverlap whether this rank accepts ranks that share a device
 * @param multiprocessors the number of the device's multiprocessors
 * @param choices the settings that must be the same on all ranks, in one line
 * @param links the device's links, as written by {@link LinkMatrix#write}
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
   * Describes a rank in this process.
   *
   * @param pciBusId the PCI bus ID of its device
   * @param allowsOverlap whether ranks may share a device
   * @param multiprocessors the number of the device's multiprocessors
   * @param choices the settings that must be the same on all ranks, in one line
   * @param links the device's links, as written by {@link LinkMatrix#write}
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
   * Sends all ranks where each of them runs.
   *
   * @param exchange the group's exchange
   * @param own the description of this rank
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @return the descriptions, in rank order
   * @throws FarRanksException on all ranks, if they are on several hosts
   * @throws BackendException on all ranks, if they share a device without permission or their
   *     choices differ
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
          "a peer describes itself in a format unknown to this version of Tutti", e);
    }
  }

  private static void requireOneHost(List<PeerInfo> all, int rank) {
    for (int r = 0; r < all.size(); r++) {
      if (!all.get(r).host.equals(all.get(0).host)) {
        throw new FarRanksException(
            ("rank %s: rank %s runs on another host than rank 0, but the ranks of a group on CUDA"
                    + " devices must share a host")
                .formatted(rank, r));
      }
    }
  }

  private static void requireOneChoice(List<PeerInfo> all, int rank) {
    for (int r = 0; r < all.size(); r++) {
      if (!all.get(r).choices.equals(all.get(0).choices)) {
        throw new BackendException(
            ("rank %s: rank %s has %s, but rank 0 has %s; these settings must be the same on all"
                    + " ranks")
                .formatted(rank, r, all.get(r).choices, all.get(0).choices));
      }
    }
  }

  private static void requireLeave(List<PeerInfo> all, int rank) {
    Map<String, Integer> first = new HashMap<>();
    for (int r = 0; r < all.size(); r++) {
      Integer other = first.putIfAbsent(all.get(r).pciBusId, r);
      if (other != null && !all.stream().allMatch(PeerInfo::allowsOverlap)) {
        throw new BackendException(
            ("rank %s: ranks %s and %s have the same device %s; give each rank its own, or set"
                    + " TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES=1 on all ranks")
                .formatted(rank, other, r, all.get(r).pciBusId));
      }
    }
  }

  /** Returns whether two ranks of one process use one device. */
  public static boolean shareInProcess(List<PeerInfo> all) {
    return all.stream().map(each -> each.process + SEPARATOR + each.pciBusId).distinct().count()
        < all.size();
  }

  /** Returns the kind of connection between the slowest pair of devices; the same on all ranks. */
  public static PeerLinks slowestLinks(List<PeerInfo> all) {
    return LinkMatrix.read(
            all.stream().map(PeerInfo::pciBusId).toList(),
            all.stream().map(PeerInfo::links).toList())
        .slowest();
  }

  /** Returns the number of multiprocessors of the smallest device. */
  public static int leastMultiprocessors(List<PeerInfo> all) {
    return all.stream().mapToInt(PeerInfo::multiprocessors).min().orElse(0);
  }

  /** Returns the largest number of ranks on one device. */
  public static int mostOnOneDevice(List<PeerInfo> all) {
    Map<String, Integer> counts = new HashMap<>();
    all.forEach(each -> counts.merge(each.pciBusId, 1, Integer::sum));
    return counts.values().stream().mapToInt(Integer::intValue).max().orElse(0);
  }

  /** Returns the number of processes whose ranks use the device of a rank. */
  public static int processesOnDevice(List<PeerInfo> all, int rank) {
    String device = all.get(rank).pciBusId;
    return Math.toIntExact(
        all.stream()
            .filter(each -> each.pciBusId.equals(device))
            .map(PeerInfo::process)
            .distinct()
            .count());
  }
}
