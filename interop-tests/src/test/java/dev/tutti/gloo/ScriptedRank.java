package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerType;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/** A rank of Tutti that runs lines of a libtorch peer's script, one subgroup at a time. */
final class ScriptedRank implements AutoCloseable {
  private final ProcessGroup group;
  private final int size;
  private @Nullable ScriptedRank subgroup;

  ScriptedRank(ProcessGroup group) {
    this.group = group;
    this.size = group.size();
  }

  /** Runs one line and returns the checksum that a peer would report. */
  String run(String text) {
    Line line = new Line(text);
    if (!line.options.containsKey("group")) {
      return PeerData.crc(line.run());
    }
    return subgroup == null
        ? PeerData.crc(new byte[0])
        : PeerData.crc(subgroup.new Line(text).run());
  }

  private void enter(List<Integer> ranks) {
    if (subgroup != null) {
      subgroup.group.close();
    }
    subgroup = group.subgroup(ranks).map(ScriptedRank::new).orElse(null);
  }

  /** Closes the subgroup. */
  @Override
  public void close() {
    if (subgroup != null) {
      subgroup.group.close();
    }
  }

  private void refuseUnevenParts() {
    long[] splits = new long[size];
    splits[0] = 3;
    Tensor whole = Tensor.allocate(DType.FLOAT32, 3);
    Tensor part = Tensor.allocate(DType.FLOAT32, splits[group.rank()]);
    assertThatThrownBy(() -> group.allGatherInto(whole, part, splits))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("in this group: PyTorch's Gloo takes only parts of equal size");
  }

  private final class Line {
    private final List<String> words = new ArrayList<>();
    private final Map<String, String> options = new HashMap<>();
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    Line(String text) {
      for (String word : text.split(" ")) {
        int equals = word.indexOf('=');
        if (equals < 0) {
          words.add(word);
        } else {
          options.put(word.substring(0, equals), word.substring(equals + 1));
        }
      }
    }

    byte[] run() {
      switch (words.getFirst()) {
        case "allreduce" -> {
          Tensor tensor = input(1, count(3), words.get(2));
          group.allReduce(tensor, op());
          result(tensor);
        }
        case "allreduce_coalesced" -> {
          List<Tensor> tensors = split(inputOf(3), counts(3));
          group.allReduceCoalesced(tensors, op(), CallOptions.DEFAULT);
          tensors.forEach(this::result);
        }
        case "allreduce_sparse" -> allReduceSparse();
        case "reduce" -> {
          Tensor tensor = input(1, count(3), words.get(2));
          group.reduce(tensor, op(), root());
          resultOnRoot(List.of(tensor));
        }
        case "reduce_scatter" -> {
          Tensor output = Tensor.allocate(type(1), count(3));
          group.reduceScatter(output, parts(inputFor(3, size), count(3)), op());
          result(output);
        }
        case "reduce_scatter_base" -> {
          Tensor output = Tensor.allocate(type(1), count(3));
          group.reduceScatterInto(output, inputFor(3, size), op());
          result(output);
        }
        case "broadcast" -> {
          Tensor tensor = Tensor.allocate(type(1), count(2));
          if (group.rank() == root()) {
            tensor.copyFrom(input(1, count(2), ""));
          }
          group.broadcast(tensor, root());
          result(tensor);
        }
        case "allgather" -> {
          List<Tensor> outputs = allocate(count(2));
          group.allGather(outputs, input(1, count(2), ""));
          outputs.forEach(this::result);
        }
        case "allgather_base" -> {
          Tensor output = Tensor.allocate(type(1), count(2) * size);
          group.allGatherInto(output, input(1, count(2), ""));
          result(output);
        }
        case "allgather_into_tensor_coalesced" -> allGatherCoalesced();
        case "gather" -> {
          List<Tensor> outputs = group.rank() == root() ? allocate(count(2)) : List.of();
          group.gather(outputs, input(1, count(2), ""), root());
          resultOnRoot(outputs);
        }
        case "scatter" -> {
          Tensor output = Tensor.allocate(type(1), count(2));
          List<Tensor> inputs =
              group.rank() == root() ? parts(inputFor(2, size), count(2)) : List.of();
          group.scatter(output, inputs, root());
          result(output);
        }
        case "alltoall_base" -> allToAll();
        case "send" -> group.send(input(3, count(4), ""), number(1), tag(2));
        case "recv" -> {
          Tensor tensor = Tensor.allocate(type(3), count(4));
          group.recv(tensor, number(1), tag(2));
          result(tensor);
        }
        case "recvany" -> {
          Tensor tensor = Tensor.allocate(type(2), count(3));
          Work work = group.recvAnySource(tensor, tag(1), CallOptions.ASYNC);
          work.await();
          result(tensor);
        }
        case "subgroup" ->
            enter(Arrays.stream(options.get("ranks").split(",")).map(Integer::valueOf).toList());
        case "barrier" -> group.barrier();
        case "uneven" -> refuseUnevenParts();
        case "monitored_barrier" ->
            group.monitoredBarrier(Duration.ofSeconds(60), MissingRanks.FIRST);
        default -> throw new IllegalArgumentException(words.toString());
      }
      return out.toByteArray();
    }

    private void allReduceSparse() {
      int rows = number(3);
      int columns = number(4);
      int stored = number(5);
      Tensor indices = Tensor.allocate(DType.INT64, 1, stored);
      for (int i = 0; i < stored; i++) {
        indices.setLong(i, (long) (group.rank() + 3 * i) % rows);
      }
      Tensor values = input(1, (long) stored * columns, words.get(2)).view(stored, columns);
      Tensor sum =
          group
              .allReduce(
                  Tensor.sparse(indices, values, rows, columns), ReduceOp.SUM, CallOptions.DEFAULT)
              .result()
              .get(0);
      Tensor dense = Tensor.allocate(type(1), rows, columns);
      for (long entry = 0; entry < sum.indices().size(1); entry++) {
        dense.select(0, sum.indices().getLong(entry)).copyFrom(sum.values().select(0, entry));
      }
      result(dense);
    }

    private void allGatherCoalesced() {
      long[] counts = counts(2);
      List<Tensor> inputs = split(input(1, LongStream.of(counts).sum(), ""), counts);
      List<Tensor> outputs =
          LongStream.of(counts).mapToObj(n -> Tensor.allocate(type(1), n * size)).toList();
      group.allGatherIntoCoalesced(outputs, inputs, CallOptions.DEFAULT);
      outputs.forEach(this::result);
    }

    private void allToAll() {
      if (!options.containsKey("splits")) {
        Tensor output = Tensor.allocate(type(1), count(2) * size);
        group.allToAllSingle(output, inputFor(2, size));
        result(output);
        return;
      }
      long[][] table =
          Arrays.stream(options.get("splits").split(";"))
              .map(row -> Arrays.stream(row.split(",")).mapToLong(Long::parseLong).toArray())
              .toArray(long[][]::new);
      long[] sent = table[group.rank()];
      long[] received = Arrays.stream(table).mapToLong(row -> row[group.rank()]).toArray();
      Tensor output = Tensor.allocate(type(1), sum(received));
      group.allToAllSingle(output, input(1, sum(sent), ""), received, sent);
      result(output);
    }

    private static long sum(long[] counts) {
      return LongStream.of(counts).sum();
    }

    private Tensor inputOf(int countsAt) {
      return input(1, LongStream.of(counts(countsAt)).sum(), words.get(2));
    }

    private Tensor inputFor(int countAt, int times) {
      return input(1, count(countAt) * times, countAt == 3 ? words.get(2) : "");
    }

    private Tensor input(int typeAt, long count, String reduceOp) {
      byte[] bytes =
          PeerData.input(
              PeerType.of(words.get(typeAt)),
              PeerData.Pattern.of(reduceOp, options.getOrDefault("data", "default")),
              group.rank(),
              0,
              Math.toIntExact(count),
              Long.parseLong(options.getOrDefault("seed", "0")));
      Tensor tensor = Tensor.allocate(type(typeAt), count);
      MemorySegment.copy(bytes, 0, tensor.segment(), ValueLayout.JAVA_BYTE, 0, bytes.length);
      return tensor;
    }

    private List<Tensor> split(Tensor tensor, long[] counts) {
      List<Tensor> parts = new ArrayList<>();
      long start = 0;
      for (long count : counts) {
        parts.add(tensor.narrow(0, start, count).copy());
        start += count;
      }
      return parts;
    }

    private List<Tensor> parts(Tensor tensor, long count) {
      return IntStream.range(0, size)
          .mapToObj(rank -> tensor.narrow(0, rank * count, count))
          .toList();
    }

    private List<Tensor> allocate(long count) {
      return IntStream.range(0, size).mapToObj(_ -> Tensor.allocate(type(1), count)).toList();
    }

    private void result(Tensor tensor) {
      out.writeBytes(tensor.segment().toArray(ValueLayout.JAVA_BYTE));
    }

    private void resultOnRoot(List<Tensor> tensors) {
      if (group.rank() == root()) {
        tensors.forEach(this::result);
      }
    }

    private DType type(int at) {
      return DType.ofLabel(words.get(at));
    }

    private ReduceOp op() {
      return ReduceOp.ofName(words.get(2));
    }

    private int root() {
      return Integer.parseInt(options.get("root"));
    }

    private int number(int at) {
      return Integer.parseInt(words.get(at));
    }

    private int tag(int at) {
      return number(at);
    }

    private long count(int at) {
      return Long.parseLong(words.get(at));
    }

    private long[] counts(int at) {
      return Arrays.stream(words.get(at).split(",")).mapToLong(Long::parseLong).toArray();
    }
  }
}
