package dev.tutti.interop.pytorch;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/** The lines of a world: all operations that Python's {@code torch.distributed} offers on Gloo. */
final class Lines {
  private static final List<String> FLOATS = List.of("float32", "float64", "float16", "bfloat16");
  private static final List<String> INTEGERS = List.of("int8", "uint8", "int32", "int64");
  private static final List<String> COMPLEX = List.of("complex64", "complex128");

  private final List<String> lines = new ArrayList<>();
  private final int size;

  private Lines(int size) {
    this.size = size;
  }

  /**
   * Returns the lines; those about which least is known come last.
   *
   * @param size number of ranks, at least 2
   */
  static List<String> of(int size) {
    Lines lines = new Lines(size);
    lines.types();
    lines.sizes();
    lines.rounding();
    lines.messages("");
    lines.subgroups();
    lines.coalesced();
    lines.complex();
    for (String type : List.of("float32", "bfloat16", "int64")) {
      lines.add("alltoall " + type + " 5");
    }
    lines.add("barrier");
    return List.copyOf(lines.lines);
  }

  private void add(String line) {
    lines.add(line);
  }

  private void types() {
    for (String type : FLOATS) {
      reductions(type, List.of("sum", "avg", "product", "min", "max"));
      moves(type, "");
    }
    for (String type : INTEGERS) {
      reductions(type, List.of("sum", "product", "min", "max", "band", "bor", "bxor"));
      moves(type, "");
    }
    // Gloo adds bools as bytes and leaves the number of trues; Tutti leaves a bool.
    reductions("bool", List.of("product", "min", "max", "band", "bor", "bxor"));
    moves("bool", "");
  }

  private void reductions(String type, List<String> ops) {
    for (String op : ops) {
      add("allreduce " + type + " " + op + " 17");
      add("reduce " + type + " " + op + " 6 root=" + (size - 1));
      add("reduce_scatter " + type + " " + op + " 3");
      add("reduce_scatter_base " + type + " " + op + " 3");
    }
  }

  private void moves(String type, String options) {
    for (int root = 0; root < size; root++) {
      add("broadcast " + type + " 17 root=" + root + options);
    }
    add("allgather " + type + " 5" + options);
    add("allgather_base " + type + " 7" + options);
    add("gather " + type + " 5 root=" + (size - 1) + options);
    add("scatter " + type + " 5 root=" + (size - 1) + options);
    add("alltoall_base " + type + " 3" + options);
  }

  private void sizes() {
    Set<Integer> counts = new LinkedHashSet<>(List.of(0, 1, 3, size - 1, size, 1_000_003));
    for (int count : counts) {
      add("allreduce float32 sum " + count);
      add("broadcast float32 " + count + " root=" + (size - 1));
      add("reduce float32 sum " + count + " root=0");
      add("allgather float32 " + count);
      add("allgather_base int8 " + count);
      add("gather float32 " + count + " root=0");
      add("scatter float32 " + count + " root=" + (size - 1));
      add("alltoall_base float32 " + count);
    }
    // More than two segments per rank, for which the ring of reduce does more than it needs to.
    add("reduce float32 sum 2600000 root=1");
    add("allreduce float64 sum 1300007");
    add("allreduce_sparse float32 sum 7 3 5");
    add("allreduce_sparse int64 sum 50 1 20");
    add("allreduce_sparse float64 sum 4 2 0");
    add("alltoall_base float32 splits=" + splits());
    add("alltoall_base int64 splits=" + splits());
    add("monitored_barrier");
    add("allreduce int32 sum 5 seed=3");
  }

  private String splits() {
    return String.join(
        ";",
        IntStream.range(0, size)
            .mapToObj(
                from ->
                    String.join(
                        ",",
                        IntStream.range(0, size)
                            .mapToObj(to -> Integer.toString((from + 2 * to) % 4))
                            .toList()))
            .toList());
  }

  private void rounding() {
    for (String type : FLOATS) {
      for (String op : List.of("sum", "avg", "product")) {
        add("allreduce " + type + " " + op + " 10007 data=fraction");
      }
    }
  }

  private void messages(String options) {
    for (String type : List.of("float32", "int16", "bool", "complex128", "float16")) {
      for (int count : new int[] {0, 1, 5000}) {
        add("exchange " + type + " " + count + options);
      }
    }
    add("exchange float32 300001" + options);
    add("ring float32 300001" + options);
    add("ring int64 3" + options);
    add("anysource float64 33 root=0" + options);
    add("anysource uint8 70001 root=1" + options);
  }

  private void subgroups() {
    int number = 0;
    for (String ranks : new LinkedHashSet<>(List.of("0,1", "0," + (size - 1), "1," + (size - 1)))) {
      if (ranks.equals("1,1")) {
        continue;
      }
      add("newgroup " + ranks);
      number++;
      String options = " group=" + number;
      add("allreduce float32 sum 1003" + options);
      add("allreduce bfloat16 avg 19" + options);
      add("reduce int32 max 6 root=1" + options);
      add("reduce_scatter_base float64 sum 3" + options);
      add("broadcast float32 5 root=0" + options);
      add("broadcast float32 5 root=1" + options);
      add("allgather int64 5" + options);
      add("gather int8 5 root=0" + options);
      add("scatter float16 5 root=1" + options);
      add("alltoall_base float32 splits=1,2;3,0" + options);
      add("exchange float32 5" + options);
      add("anysource int32 7 root=1" + options);
      add("monitored_barrier" + options);
      add("barrier" + options);
      add("allreduce float32 sum 11 seed=" + number);
    }
  }

  private void coalesced() {
    add("allreduce_coalesced float32 sum 3,2,5");
    add("allreduce_coalesced int64 max 1,4");
    add("allgather_into_tensor_coalesced float32 3,1");
    add("allgather_into_tensor_coalesced uint8 2,7");
    add("reduce_scatter_tensor_coalesced float32 sum 2,5");
    add("reduce_scatter_tensor_coalesced int32 min 1,3");
    add("allgather_coalesced float32 3,1");
    add("allgather_coalesced int64 2,5,1");
  }

  private void complex() {
    for (String type : COMPLEX) {
      add("allreduce " + type + " sum 17");
      add("allreduce " + type + " avg 17");
      add("broadcast " + type + " 5 root=0");
      add("allgather " + type + " 5");
      add("scatter " + type + " 5 root=0");
      add("alltoall_base " + type + " 3");
      add("reduce " + type + " sum 6 root=0");
    }
  }
}
