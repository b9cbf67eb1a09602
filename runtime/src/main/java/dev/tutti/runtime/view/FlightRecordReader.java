package dev.tutti.runtime.view;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.runtime.operation.FlightRecord;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.view.JobRecords.Failed;
import dev.tutti.runtime.view.JobRecords.Taken;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Reads flight records of Tutti and PyTorch, given as plain maps. */
public final class FlightRecordReader {
  private FlightRecordReader() {}

  /**
   * Adds the content of a flight record.
   *
   * @param record the record, which has entries
   * @param rank the rank that left it
   * @throws IllegalArgumentException if it is no flight record
   */
  public static void add(Map<?, ?> record, int rank, JobRecords records) {
    if (!(record.get("entries") instanceof List<?> all)) {
      throw new IllegalArgumentException("not a flight record: it has no entries");
    }
    records.addRank(rank);
    long time = number(record.get("time_ns"), 0);
    if (time > 0) {
      records.taken().put(rank, new Taken(time, number(record.get("slow_ms"), 0) * 1_000_000));
    }
    if (record.get("pg_config") instanceof Map<?, ?> groups) {
      groups.forEach(
          (name, config) -> {
            if (config instanceof Map<?, ?> fields && fields.get("ranks") != null) {
              records.addGroup(String.valueOf(name), ranks(String.valueOf(fields.get("ranks"))));
            }
          });
    }
    if (record.get("failures") instanceof Map<?, ?> failures) {
      failures.forEach((group, failure) -> addFailure(group.toString(), failure, rank, records));
    }
    int others = 0;
    for (Object each : all) {
      if (each instanceof Map<?, ?> fields && !name(fields).isEmpty()) {
        records.add(operation(rank, fields));
      } else {
        others++;
      }
    }
    if (others > 0) {
      records.notes().add("rank " + rank + " has entries that name no operation: " + others);
    }
  }

  private static void addFailure(String group, Object failure, int rank, JobRecords records) {
    try {
      if (failure instanceof Map<?, ?> fields) {
        records
            .failures()
            .computeIfAbsent(group, _ -> new TreeMap<>())
            .put(rank, Failed.of(fields));
      }
    } catch (IllegalArgumentException e) {
      String what = "rank " + rank + ": the failure of group " + group;
      records.notes().add(what + " cannot be judged again: " + e.getMessage());
    }
  }

  /**
   * Reads ranks that a record names.
   *
   * @throws IllegalArgumentException if the text is no list of ranks
   */
  public static List<Integer> ranks(String text) {
    return Arrays.stream(text.replaceAll("[\\[\\]\\s]", "").split(","))
        .filter(each -> !each.isEmpty())
        .map(FlightRecordReader::rank)
        .toList();
  }

  /**
   * Reads a rank that a record names.
   *
   * @throws IllegalArgumentException if it is none
   */
  public static int rank(Object given) {
    String text = given.toString();
    if (!text.matches("[0-9]{1,9}")) {
      throw new IllegalArgumentException("not a flight record: '" + text + "' is no rank");
    }
    return Integer.parseInt(text);
  }

  /** Reads an entry of the flight record of a rank. */
  public static RankOperation operation(int rank, Map<?, ?> fields) {
    boolean isMessage = Boolean.TRUE.equals(fields.get("is_p2p"));
    boolean isOfTorch = text(fields.get("op")).isEmpty();
    boolean isRetired = Boolean.TRUE.equals(fields.get("retired"));
    // A rank that only receives has no inputs, as in a scatter from another rank.
    String side = sizes(fields.get("input_sizes")).isEmpty() ? "output" : "input";
    OpType type = type(fields);
    // The tensor that c10d records for a barrier is not the caller's.
    boolean hasTensors = type != OpType.BARRIER && type != OpType.MONITORED_BARRIER;
    List<?> dtypes =
        hasTensors && fields.get(side + "_dtypes") instanceof List<?> types ? types : List.of();
    return new RankOperation(
        rank,
        fields.get("process_group") instanceof List<?> names && !names.isEmpty()
            ? String.valueOf(names.getFirst())
            : "0",
        new Issued(
            type,
            number(fields.get(isMessage ? "p2p_seq_id" : "collective_seq_id"), 0),
            text(fields.get("reduce_op")),
            dtypes.isEmpty() ? "" : dtype(String.valueOf(dtypes.getFirst())),
            hasTensors ? numel(sizes(fields.get(side + "_sizes"))) : 0,
            isMessage ? -1 : optionalRank(fields.get("root")),
            RankProgress.parts(
                type, sizes(fields.get("input_sizes")), sizes(fields.get("output_sizes")))),
        isMessage ? optionalRank(fields.get("peer")) : -1,
        (int) number(fields.get("tag"), 0),
        text(fields.get("path")),
        (isOfTorch && isRetired) || text(fields.get("state")).equals("completed"),
        number(fields.get("time_created_ns"), 0),
        number(fields.get("time_discovered_completed_ns"), 0),
        isOfTorch);
  }

  /** Returns the label of an element type by its name in c10d. */
  private static String dtype(String name) {
    return Arrays.stream(DType.values())
        .filter(dtype -> FlightRecord.dtypeName(dtype).equals(name))
        .findFirst()
        .map(DType::label)
        .orElseGet(() -> name.replace(' ', '_'));
  }

  /** Returns the number of elements of all tensors together. */
  private static long numel(List<List<Long>> sizes) {
    return sizes.stream().mapToLong(shape -> shape.stream().reduce(1L, (a, b) -> a * b)).sum();
  }

  /** Returns a rank, or -1 if there is none. */
  private static int optionalRank(@Nullable Object value) {
    long rank = number(value, -1);
    return rank == -1 ? -1 : rank(rank);
  }

  private static String name(Map<?, ?> fields) {
    String own = text(fields.get("op"));
    return own.isEmpty() ? text(fields.get("profiling_name")) : own;
  }

  private static OpType type(Map<?, ?> fields) {
    String name = name(fields);
    String bare = name.substring(name.indexOf(':') + 1).replaceAll(" .*", "");
    OpType known = labelled(bare);
    return known == OpType.UNKNOWN ? ofTorch(bare) : known;
  }

  /** Returns the type of operation that has a label. */
  public static OpType labelled(String label) {
    return Arrays.stream(OpType.values())
        .filter(type -> type.label().equals(label))
        .findFirst()
        .orElse(OpType.UNKNOWN);
  }

  private static OpType ofTorch(String name) {
    return switch (name) {
      case "all_reduce" -> OpType.ALL_REDUCE;
      case "allreduce_coalesced" -> OpType.ALL_REDUCE_COALESCED;
      case "all_gather" -> OpType.ALL_GATHER;
      case "_all_gather_base", "_allgather_base", "all_gather_single" -> OpType.ALL_GATHER_INTO;
      case "all_gather_into_tensor_coalesced", "ALLGATHER_coalesced" ->
          OpType.ALL_GATHER_INTO_COALESCED;
      case "reduce_scatter" -> OpType.REDUCE_SCATTER;
      case "_reduce_scatter_base", "reduce_scatter_single" -> OpType.REDUCE_SCATTER_INTO;
      case "reduce_scatter_tensor_coalesced", "REDUCE_SCATTER_coalesced" ->
          OpType.REDUCE_SCATTER_INTO_COALESCED;
      case "all_to_all", "all_to_all_single" -> OpType.ALL_TO_ALL_SINGLE;
      case "all_reduce_barrier" -> OpType.BARRIER;
      default -> OpType.UNKNOWN;
    };
  }

  private static List<List<Long>> sizes(@Nullable Object value) {
    List<List<Long>> all = new ArrayList<>();
    for (Object tensor : value instanceof List<?> tensors ? tensors : List.of()) {
      if (tensor instanceof List<?> shape) {
        all.add(shape.stream().map(size -> number(size, 0)).toList());
      }
    }
    return all;
  }

  /** Returns a text; empty if the value is none. */
  public static String text(@Nullable Object value) {
    return value instanceof String text ? text : "";
  }

  /** Returns a whole number, or another one if the value is none. */
  public static long number(@Nullable Object value, long otherwise) {
    return value instanceof Number number ? number.longValue() : otherwise;
  }
}
