package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.MissingRanks;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Runs every operation on a rank of {@link NetworkNamespacesTest} and checks the results. It prints
 * where it listens, how its collectives run, what a large all-reduce sent through the interface,
 * and {@code OK} at the end; or {@code REFUSED} and why the ranks cannot connect. A second argument
 * reduces the number of sizes.
 */
final class HostsMain {
  private static final long[] COUNTS = {1, 1000, 10_000, 40_001, 300_001};
  private static final long[] FEW_COUNTS = {1, 10_000, 40_001};
  private static final int LARGE = 2 << 20;

  private final ProcessGroup group;
  private final int rank;
  private final int size;
  private final long[] counts;

  private HostsMain(ProcessGroup group, long[] counts) {
    this.group = group;
    this.counts = counts;
    this.rank = group.rank();
    this.size = group.size();
  }

  public static void main(String[] args) throws Exception {
    BindAddress chosen = BindAddress.choose(Settings.fromEnvironment());
    System.out.println(
        "LISTENS " + chosen.address().getHostAddress() + " " + chosen.interfaceName());
    HostsProvider provider = new HostsProvider(Path.of(args[0]), rank -> rank / 2);
    try (ProcessGroup group = ProcessGroup.init(GroupOptions.DEFAULT.withProvider(provider))) {
      System.out.println("RUNS " + provider.made().get(0));
      HostsMain main = new HostsMain(group, args.length > 1 ? FEW_COUNTS : COUNTS);
      main.reduce();
      main.gather();
      main.exchange();
      main.passMessages();
      System.out.println("SENT " + main.sentByAllReduce(chosen.interfaceName()));
      System.out.println("OK");
    } catch (RendezvousException | PeerFailedException e) {
      System.out.println("REFUSED " + e.getMessage());
    }
  }

  /** Returns elements that identify their owner. */
  private static Tensor filled(DType dtype, int owner, long count) {
    Tensor tensor = Tensor.allocate(dtype, count);
    for (long i = 0; i < count; i++) {
      tensor.setDouble(i, value(owner, i));
    }
    return tensor;
  }

  private static double value(int owner, long index) {
    return (index % 5 + owner) % 4 + 1;
  }

  private double sum(long index) {
    double sum = 0;
    for (int r = 0; r < size; r++) {
      sum += value(r, index);
    }
    return sum;
  }

  private interface Expected {
    double at(long index);
  }

  private static void check(String what, Tensor tensor, Expected expected) {
    for (long i = 0; i < tensor.numel(); i++) {
      if (tensor.getDouble(i) != expected.at(i)) {
        throw new AssertionError(
            what
                + " "
                + tensor
                + ": element "
                + i
                + " is "
                + tensor.getDouble(i)
                + ", not "
                + expected.at(i));
      }
    }
  }

  private void reduce() {
    for (DType dtype : List.of(DType.FLOAT32, DType.INT64, DType.BFLOAT16)) {
      for (long count : counts) {
        Tensor tensor = filled(dtype, rank, count);
        group.allReduce(tensor);
        check("allReduce", tensor, this::sum);
        Tensor average = filled(DType.FLOAT64, rank, count);
        group.allReduce(average, ReduceOp.AVG);
        check("allReduce AVG", average, i -> sum(i) / size);
        for (int root = 0; root < size; root++) {
          Tensor reduced = filled(dtype, rank, count);
          group.reduce(reduced, ReduceOp.SUM, root);
          if (rank == root) {
            check("reduce", reduced, this::sum);
          }
        }
      }
    }
    List<Tensor> both = List.of(filled(DType.INT32, rank, 7), filled(DType.INT32, rank, 9));
    group.allReduceCoalesced(both, ReduceOp.SUM, CallOptions.DEFAULT).await();
    both.forEach(tensor -> check("allReduceCoalesced", tensor, this::sum));
    Tensor places = Tensor.of(new long[] {rank, size}).view(1, 2);
    Tensor sparse = Tensor.sparse(places, Tensor.of(1f, 1f), size + 1);
    Work work = group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    Tensor total = work.result().get(0);
    check("indices of the sparse allReduce", total.indices(), i -> i);
    check("sparse allReduce", total.values(), i -> i < size ? 1 : size);
  }

  private void gather() {
    for (long count : counts) {
      for (int root = 0; root < size; root++) {
        int from = root;
        Tensor copied = filled(DType.FLOAT32, rank, count);
        group.broadcast(copied, root);
        check("broadcast", copied, i -> value(from, i));
        List<Tensor> parts = rank == root ? allocated(count) : List.of();
        group.gather(parts, filled(DType.FLOAT32, rank, count), root);
        checkParts("gather", parts);
        Tensor own = Tensor.allocate(DType.FLOAT32, count);
        group.scatter(own, rank == root ? allFilled(count) : List.of(), root);
        check("scatter", own, i -> value(rank, i));
      }
      Tensor whole = Tensor.allocate(DType.FLOAT32, size * count);
      group.allGatherInto(whole, filled(DType.FLOAT32, rank, count));
      check("allGatherInto", whole, i -> value((int) (i / count), i % count));
      List<Tensor> parts = allocated(count);
      group.allGather(parts, filled(DType.FLOAT32, rank, count));
      checkParts("allGather", parts);
    }
  }

  private void exchange() {
    for (long count : counts) {
      List<Tensor> inputs = new ArrayList<>();
      for (int peer = 0; peer < size; peer++) {
        inputs.add(filled(DType.FLOAT32, rank + peer, count));
      }
      List<Tensor> outputs = allocated(count);
      group.allToAll(outputs, inputs);
      for (int peer = 0; peer < size; peer++) {
        int from = peer;
        check("allToAll", outputs.get(peer), i -> value(from + rank, i));
      }
      Tensor output = Tensor.allocate(DType.FLOAT32, count);
      group.reduceScatter(output, allFilled(count), ReduceOp.SUM);
      check("reduceScatter", output, i -> size * value(rank, i));
      Tensor input = filled(DType.FLOAT32, rank, size * count);
      group.reduceScatterInto(output, input, ReduceOp.SUM);
      check("reduceScatterInto", output, i -> sum(rank * count + i));
      Tensor exchanged = Tensor.allocate(DType.FLOAT32, size * count);
      group.allToAllSingle(exchanged, input, CallOptions.DEFAULT).await();
      check("allToAllSingle", exchanged, i -> value((int) (i / count), rank * count + i % count));
      group.barrier();
    }
    group.monitoredBarrier(Duration.ofMinutes(2), MissingRanks.ALL);
  }

  private void passMessages() {
    for (long count : counts) {
      List<Work> works = new ArrayList<>();
      Tensor[] received = new Tensor[size];
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          received[peer] = Tensor.allocate(DType.FLOAT32, count);
          works.add(group.recv(received[peer], peer, 0, CallOptions.ASYNC));
          works.add(group.send(filled(DType.FLOAT32, rank, count), peer, 0, CallOptions.ASYNC));
        }
      }
      works.forEach(Work::await);
      for (int peer = 0; peer < size; peer++) {
        int from = peer;
        if (peer != rank) {
          check("recv", received[peer], i -> value(from, i));
        }
      }
    }
    if (rank == 0) {
      boolean[] heard = new boolean[size];
      for (int i = 1; i < size; i++) {
        Tensor any = Tensor.allocate(DType.INT32, 1);
        int source = group.recvAnySource(any);
        check("recvAnySource", any, index -> source);
        heard[source] = true;
      }
      assertThat(Arrays.copyOfRange(heard, 1, size)).containsOnly(true);
    } else {
      group.send(Tensor.of(rank), 0);
    }
  }

  /** Returns the bytes that this host sent for an all-reduce of {@link #LARGE} elements. */
  private long sentByAllReduce(String interfaceName) throws IOException {
    Path counter = Path.of("/sys/class/net", interfaceName, "statistics/tx_bytes");
    Tensor tensor = Tensor.allocate(DType.FLOAT32, LARGE);
    group.barrier();
    long before = Long.parseLong(Files.readString(counter).strip());
    group.barrier();
    group.allReduce(tensor);
    group.barrier();
    return Long.parseLong(Files.readString(counter).strip()) - before;
  }

  private List<Tensor> allocated(long count) {
    List<Tensor> tensors = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      tensors.add(Tensor.allocate(DType.FLOAT32, count));
    }
    return tensors;
  }

  private List<Tensor> allFilled(long count) {
    List<Tensor> tensors = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      tensors.add(filled(DType.FLOAT32, r, count));
    }
    return tensors;
  }

  private static void checkParts(String what, List<Tensor> parts) {
    for (int r = 0; r < parts.size(); r++) {
      int from = r;
      check(what, parts.get(r), i -> value(from, i));
    }
  }
}
