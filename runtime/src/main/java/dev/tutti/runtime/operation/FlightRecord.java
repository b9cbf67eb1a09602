package dev.tutti.runtime.operation;

import dev.tutti.DType;
import dev.tutti.OpType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Combines the flight records of a rank's groups, in c10d's format (its version 2.10). */
public final class FlightRecord {
  /** The version of the format, as PyTorch's tool reads it. */
  public static final String VERSION = "2.10";

  /** The operations that have no name in c10d, or none that its tool supports. */
  private static final Set<Object> UNKNOWN =
      Set.of(
          OpType.ALLOCATE_SYMMETRIC.label(),
          OpType.SPLIT.label(),
          OpType.SUBGROUP.label(),
          OpType.BATCH.label(),
          OpType.UNKNOWN.label());

  private static final Set<Object> BARRIERS =
      Set.of(OpType.BARRIER.label(), OpType.MONITORED_BARRIER.label());

  private FlightRecord() {}

  /**
   * Writes several records as one.
   *
   * @param rank this rank, among all ranks
   * @param restarts how many times the launcher has restarted the job
   * @param parts the records of its groups
   */
  public static Map<String, Object> of(int rank, int restarts, List<Part> parts) {
    Map<String, Object> configs = new LinkedHashMap<>();
    Map<String, Object> statuses = new LinkedHashMap<>();
    Map<String, Object> failures = new LinkedHashMap<>();
    List<Map<String, Object>> entries = new ArrayList<>();
    for (Part part : parts) {
      GroupIdentity group = part.group;
      Map<String, Object> config = new LinkedHashMap<>();
      config.put("name", group.name());
      config.put("desc", description(group));
      config.put("ranks", group.globalRanks().toString());
      configs.put(group.name(), config);
      statuses.put(group.name(), part.status);
      entries.addAll(part.entries);
      if (!part.failure.isEmpty()) {
        failures.put(group.name(), part.failure);
      }
    }
    entries.sort((a, b) -> Long.compare(created(a), created(b)));
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("version", VERSION);
    record.put("comm_lib_version", "tutti");
    record.put("rank", (long) rank);
    record.put("restarts", (long) restarts);
    record.put("pg_config", configs);
    record.put("pg_status", statuses);
    record.put("entries", entries);
    if (!failures.isEmpty()) {
      record.put("failures", failures);
    }
    return record;
  }

  /** Writes as one record the parts of several records that c10d's tool understands. */
  public static Map<String, Object> ofKnownToTorch(int rank, int restarts, List<Part> parts) {
    return of(rank, restarts, parts.stream().map(Part::knownToTorch).toList());
  }

  private static long created(Map<String, Object> entry) {
    return entry.get("time_created_ns") instanceof Long time ? time : 0;
  }

  /**
   * The record of one group.
   *
   * @param group the group
   * @param status how far the group came
   * @param entries the entries, oldest first
   * @param failure what proves its failure, and the verdict; empty if it has not failed
   */
  public record Part(
      GroupIdentity group,
      Map<String, Object> status,
      List<Map<String, Object>> entries,
      Map<String, Object> failure) {
    private Part knownToTorch() {
      return new Part(
          group,
          status,
          entries.stream()
              .filter(FlightRecord::isKnownToTorch)
              .map(FlightRecord::asInTorch)
              .toList(),
          Map.of());
    }
  }

  /**
   * Returns c10d's description of the group of all ranks, or of a group whose purpose was not
   * given.
   */
  static String description(GroupIdentity group) {
    return group.isOfAllRanks() ? "default_pg" : "undefined";
  }

  /**
   * Returns the name that c10d gives an operation in its record; its tool supports no library other
   * than NCCL.
   *
   * @param rank this rank
   * @param peer the other rank of a message
   */
  static String profilingName(OpType type, int rank, int peer) {
    String name =
        switch (type) {
          case BROADCAST -> "broadcast";
          case ALL_REDUCE, ALL_REDUCE_SPARSE -> "all_reduce";
          case ALL_REDUCE_COALESCED -> "allreduce_coalesced";
          case REDUCE -> "reduce";
          case ALL_GATHER -> "all_gather";
          case ALL_GATHER_INTO -> "_all_gather_base";
          case ALL_GATHER_INTO_COALESCED -> "all_gather_into_tensor_coalesced";
          case GATHER -> "gather";
          case SCATTER -> "scatter";
          case REDUCE_SCATTER -> "reduce_scatter";
          case REDUCE_SCATTER_INTO -> "_reduce_scatter_base";
          case REDUCE_SCATTER_INTO_COALESCED -> "reduce_scatter_tensor_coalesced";
          case ALL_TO_ALL, ALL_TO_ALL_SINGLE -> "all_to_all";
          case SEND -> "send " + rank + "->" + peer;
          case RECV, RECV_ANY_SOURCE -> "recv " + rank + "<-" + peer;
          case BARRIER, MONITORED_BARRIER -> "all_reduce_barrier";
          default -> type.label();
        };
    return "nccl:" + name;
  }

  /** Returns whether c10d's tool understands an entry. */
  private static boolean isKnownToTorch(Map<String, Object> entry) {
    return Boolean.FALSE.equals(entry.get("is_p2p")) && !UNKNOWN.contains(entry.get("op"));
  }

  /** Gives a barrier the tensor of one element that c10d's on NCCL has. */
  private static Map<String, Object> asInTorch(Map<String, Object> entry) {
    if (!BARRIERS.contains(entry.get("op"))) {
      return entry;
    }
    Map<String, Object> changed = new LinkedHashMap<>(entry);
    for (String side : List.of("input", "output")) {
      changed.put(side + "_sizes", List.of(List.of(1L)));
      changed.put(side + "_dtypes", List.of(dtypeName(DType.FLOAT32)));
    }
    return changed;
  }

  /** Returns c10d's name for an element type. */
  public static String dtypeName(DType dtype) {
    return switch (dtype) {
      case FLOAT32 -> "Float";
      case FLOAT64 -> "Double";
      case FLOAT16 -> "Half";
      case BFLOAT16 -> "BFloat16";
      case INT8 -> "Char";
      case UINT8 -> "Byte";
      case INT16 -> "Short";
      case INT32 -> "Int";
      case INT64 -> "Long";
      case BOOL -> "Bool";
      case COMPLEX64 -> "ComplexFloat";
      case COMPLEX128 -> "ComplexDouble";
      case FLOAT8_E4M3FN -> "Float8_e4m3fn";
      case FLOAT8_E5M2 -> "Float8_e5m2";
      case FLOAT8_E4M3FNUZ -> "Float8_e4m3fnuz";
      case FLOAT8_E5M2FNUZ -> "Float8_e5m2fnuz";
    };
  }
}
