package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.spi.Staging;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * A rank of a job whose other ranks may be PyTorch ranks; {@code
 * benchmarks/pytorch-interop/gpu_peer.py} is its Python counterpart. The environment defines the
 * rank. The first argument names the backend, and the others request further checks: {@code
 * messages} in order and in batches, {@code groups} of some of the ranks, {@code exchanges} with
 * the other collectives, {@code uneven} parts, all-reduces by {@code copies}, {@code sparse}
 * tensors, {@code empty} ones, sums of {@code host} tensors between those on the device, {@code
 * loss} of a rank during messages (a PyTorch rank, or the one named by the property {@code lost},
 * by the signal in {@code signal}), a {@code record} in which rank 1 lacks the last sum, an {@code
 * exit} of all ranks but rank 1 during such a sum, and {@code tags}, which {@code nccl} does not
 * support.
 */
final class GpuPeer {
  private static final int COUNT = 1_000_003;

  private GpuPeer() {}

  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK"));
    CudaDevice device = Cuda.get().device(local);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend(args[0])
            .withDevice(Device.cuda(local))
            .withTimeout(Duration.ofSeconds(Integer.getInteger("seconds", 120)));
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      List<String> wanted = new ArrayList<>(List.of(args).subList(1, args.length));
      if (!wanted.contains("sums")) {
        wanted.add(0, "sums");
      }
      for (String what : wanted) {
        switch (what) {
          case "sums" -> sums(group, device);
          case "messages" -> messages(group, device);
          case "groups" -> groups(group, device);
          case "tags" -> tags(group, device);
          case "exchanges" -> exchanges(group, device);
          case "uneven" -> uneven(group, device);
          case "copies" ->
              CopiesCases.sameAsByKernels(group, device, 1, 257, 3_000_003, 12_000_001);
          case "sparse" -> sparse(group, device);
          case "empty" -> empty(group, device);
          case "host" -> host(group, device);
          case "record" -> record(group, device);
          case "exit" -> exit(group, device);
          case "loss" -> loss(group, device, false);
          case "loss-in-sums" -> loss(group, device, true);
          default -> throw new IllegalArgumentException(what);
        }
      }
    }
  }

  private static void sums(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int size = group.size();
    Tensor few = device.tensors().copyOf(Tensor.of(rank + 1f, 10f * (rank + 1)));
    group.allReduce(few);
    float sum = size * (size + 1) / 2f;
    float[] sums = device.tensors().toHost(few).toFloatArray();
    require("sum", Arrays.equals(sums, new float[] {sum, 10 * sum}));

    int[] many = new int[COUNT];
    Arrays.setAll(many, i -> i % 1000 * (rank + 1));
    Tensor large = device.tensors().copyOf(Tensor.of(many));
    group.allReduce(large, ReduceOp.SUM);
    int[] total = device.tensors().toHost(large).toIntArray();
    for (int i = 0; i < COUNT; i++) {
      require("sum of element " + i, total[i] == i % 1000 * (int) sum);
    }

    Tensor root = device.tensors().copyOf(Tensor.of(rank == 1 ? 7L : 0L));
    group.broadcast(root, 1);
    require("broadcast", device.tensors().toHost(root).toLongArray()[0] == 7);

    Tensor all = device.tensors().copyOf(Tensor.of(new float[size]));
    group.allGatherInto(all, device.tensors().copyOf(Tensor.of((float) rank)));
    float[] ranks = device.tensors().toHost(all).toFloatArray();
    for (int r = 0; r < size; r++) {
      require("all-gather of rank " + r, ranks[r] == r);
    }
    group.barrier();
    System.out.println("Java rank " + rank + " of " + size + ": sums exact " + sums[0]);
  }

  private static Tensor filled(CudaDevice device, int count, int value) {
    int[] all = new int[count];
    Arrays.fill(all, value);
    return device.tensors().copyOf(Tensor.of(all));
  }

  private static void requireFilled(String what, CudaDevice device, Tensor tensor, int value) {
    for (int element : device.tensors().toHost(tensor).toIntArray()) {
      require(what + ": " + element + ", not " + value, element == value);
    }
  }

  /**
   * Passes messages around the ring in both directions, then exchanges with both neighbors at once.
   */
  private static void messages(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int size = group.size();
    int next = (rank + 1) % size;
    int previous = (rank + size - 1) % size;
    Tensor own = filled(device, COUNT, rank);
    Tensor got = filled(device, COUNT, -1);
    pass(group, own, next, got, previous);
    requireFilled("message from below", device, got, previous);
    Tensor sum = filled(device, 1, rank);
    group.allReduce(sum);
    pass(group, own, previous, got, next);
    requireFilled("message from above", device, got, next);
    requireFilled("sum", device, sum, size * (size - 1) / 2);
    Tensor below = filled(device, COUNT, -1);
    Tensor above = filled(device, 7, -1);
    group
        .batch()
        .send(own, next, 0)
        .send(filled(device, 7, rank), previous, 0)
        .recv(below, previous, 0)
        .recv(above, next, 0)
        .run();
    group.allReduce(sum);
    requireFilled("batch from below", device, below, previous);
    requireFilled("batch from above", device, above, next);
    requireFilled("sum", device, sum, size * size * (size - 1) / 2);
    System.out.println("Java rank " + rank + " of " + size + ": messages exact");
  }

  /** Lets rank 0 send first, and all other ranks receive first. */
  private static void pass(ProcessGroup group, Tensor own, int to, Tensor got, int from) {
    if (group.rank() == 0) {
      group.send(own, to);
      group.recv(got, from);
    } else {
      Work work = group.recv(got, from, 0, CallOptions.ASYNC);
      work.await();
      group.send(own, to);
    }
  }

  private static void host(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int sum = group.size() * (group.size() + 1) / 2;
    long[] sums = new long[7];
    Arrays.fill(sums, sum);
    for (int round = 0; round < 10; round++) {
      long[] own = new long[7];
      Arrays.fill(own, rank + 1);
      Tensor onHost = Tensor.of(own);
      Tensor onDevice = filled(device, 7, rank + 1);
      group.allReduce(onHost);
      group.allReduce(onDevice);
      require("sum on the host", Arrays.equals(onHost.toLongArray(), sums));
      requireFilled("sum on the device", device, onDevice, sum);
    }
    System.out.println(
        "Java rank " + rank + " of " + group.size() + ": host and device sums exact");
  }

  /** Begins a sum on all ranks but rank 1, writes this rank's record, and ends the process. */
  private static void record(ProcessGroup group, CudaDevice device) {
    if (group.rank() != 1) {
      Work _ = group.allReduce(filled(device, 1, 1), ReduceOp.SUM, CallOptions.ASYNC);
    }
    List<Path> files =
        group.diagnostics().dumpFlightRecord(Path.of(System.getenv("TUTTI_FLIGHT_RECORD_DUMP")));
    System.out.println("Java rank " + group.rank() + " of " + group.size() + ": recorded " + files);
    System.exit(0);
  }

  /** Exits with status 7 on all ranks but rank 1, while the device waits for rank 1. */
  private static void exit(ProcessGroup group, CudaDevice device) {
    if (group.rank() != 1) {
      Work _ = group.allReduce(filled(device, 1, 1), ReduceOp.SUM, CallOptions.ASYNC);
      System.exit(7);
    }
    long start = System.nanoTime();
    while (group.failure().isEmpty()) {
      require("failure within a minute", System.nanoTime() - start < 60_000_000_000L);
      Thread.onSpinWait();
    }
    System.out.printf(
        "Java rank 1: after %.1f s: %s%n",
        (System.nanoTime() - start) / 1e9, group.failure().orElseThrow().getMessage());
  }

  private static void sparse(ProcessGroup group, CudaDevice device) {
    int places = 1000;
    int row = 3;
    float[] dense = new float[places * row];
    Tensor own = null;
    for (int r = 0; r < group.size(); r++) {
      int entries = 5000 + 1000 * r;
      long[] indices = new long[entries];
      float[] values = new float[entries * row];
      for (int i = 0; i < entries; i++) {
        indices[i] = (i * 7919L + 131L * r) % places;
        for (int c = 0; c < row; c++) {
          values[i * row + c] = (i + c + r) % 5;
          dense[(int) indices[i] * row + c] += values[i * row + c];
        }
      }
      if (r == group.rank()) {
        CudaTensors tensors = device.tensors();
        own =
            Tensor.sparse(
                tensors.copyOf(Tensor.of(indices).view(1, entries)),
                tensors.copyOf(Tensor.of(values).view(entries, row)),
                places,
                row);
      }
    }
    Work work = group.allReduce(Objects.requireNonNull(own), ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    Tensor sum = work.result().getFirst();
    long[] found = device.tensors().toHost(sum.indices()).toLongArray();
    float[] rows = device.tensors().toHost(sum.values()).toFloatArray();
    float[] spread = new float[dense.length];
    for (int i = 0; i < found.length; i++) {
      System.arraycopy(rows, i * row, spread, (int) found[i] * row, row);
    }
    require("sparse sum", Arrays.equals(spread, dense));
    System.out.printf("Java rank %d of %d: sparse sum exact%n", group.rank(), group.size());
  }

  /** Runs the collectives not covered by {@link #sums}. */
  private static void exchanges(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int size = group.size();
    int total = size * (size - 1) / 2;
    Tensor one = filled(device, COUNT, rank);
    group.reduce(one, ReduceOp.SUM, 1);
    if (rank == 1) {
      requireFilled("reduce", device, one, total);
    }
    one = filled(device, COUNT, rank);
    List<Tensor> all = each(device, size, r -> -1);
    group.allGather(all, one);
    requireEach("all-gather", device, all, r -> r);
    List<Tensor> gathered = rank == 1 ? each(device, size, r -> -1) : List.of();
    group.gather(gathered, one, 1);
    requireEach("gather", device, gathered, r -> r);
    group.scatter(one, rank == 1 ? each(device, size, r -> 40 + r) : List.of(), 1);
    requireFilled("scatter", device, one, 40 + rank);
    IntUnaryOperator part = r -> 10 * r + rank;
    group.reduceScatter(one, each(device, size, part), ReduceOp.SUM);
    requireFilled("reduce-scatter of a list", device, one, 10 * rank * size + total);
    int[] parts = new int[size * COUNT];
    Arrays.setAll(parts, i -> part.applyAsInt(i / COUNT));
    Tensor flat = device.tensors().copyOf(Tensor.of(parts));
    group.reduceScatterInto(one, flat, ReduceOp.SUM);
    requireFilled("reduce-scatter", device, one, 10 * rank * size + total);
    Tensor swapped = filled(device, size * COUNT, -1);
    group.allToAllSingle(swapped, flat);
    int[] swappedParts = device.tensors().toHost(swapped).toIntArray();
    for (int i = 0; i < swappedParts.length; i++) {
      require("all-to-all of element " + i, swappedParts[i] == 10 * rank + i / COUNT);
    }
    Tensor most = filled(device, COUNT, rank);
    group.allReduce(most, ReduceOp.MAX);
    requireFilled("maximum", device, most, size - 1);
    System.out.println("Java rank " + rank + " of " + size + ": exchanges exact");
  }

  /** Gathers, and reduces and scatters, rows of which the ranks have unequal numbers. */
  private static void uneven(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int size = group.size();
    long[] splits = new long[size];
    Arrays.setAll(splits, r -> r == 1 ? 0 : COUNT - 1001L * r);
    int total = Math.toIntExact(Arrays.stream(splits).sum());
    int own = Math.toIntExact(splits[rank]);
    Tensor gathered = filled(device, total, -1);
    group.allGatherInto(gathered, filled(device, own, rank), splits);
    requireEach("all-gather", device, Staging.splitRows(gathered, splits), r -> r);
    Tensor rows = Tensor.allocate(DType.INT32, total);
    List<Tensor> parts = Staging.splitRows(rows, splits);
    for (int r = 0; r < size; r++) {
      parts.get(r).fill(10 * r + rank);
    }
    Tensor whole = device.tensors().copyOf(rows);
    Tensor sum = filled(device, own, -1);
    group.reduceScatterInto(sum, whole, splits, ReduceOp.SUM);
    requireFilled("reduce-scatter", device, sum, 10 * rank * size + size * (size - 1) / 2);
    group.reduceScatter(sum, Staging.splitRows(whole, splits), ReduceOp.MAX);
    requireFilled("maximum of a list", device, sum, 10 * rank + size - 1);
    System.out.println("Java rank " + rank + " of " + size + ": uneven parts exact");
  }

  private static List<Tensor> each(CudaDevice device, int size, IntUnaryOperator value) {
    return IntStream.range(0, size)
        .mapToObj(r -> filled(device, COUNT, value.applyAsInt(r)))
        .toList();
  }

  private static void requireEach(
      String what, CudaDevice device, List<Tensor> tensors, IntUnaryOperator value) {
    for (int r = 0; r < tensors.size(); r++) {
      requireFilled(what + " of rank " + r, device, tensors.get(r), value.applyAsInt(r));
    }
  }

  /** Runs operations without data, which NCCL counts, and then one with data. */
  private static void empty(ProcessGroup group, CudaDevice device) {
    int rank = group.rank();
    int size = group.size();
    int next = (rank + 1) % size;
    int previous = (rank + size - 1) % size;
    Tensor none = filled(device, 0, 0);
    Tensor got = filled(device, 1, -1);
    pass(group, none, next, filled(device, 0, 0), previous);
    pass(group, filled(device, 1, rank), next, got, previous);
    requireFilled("message behind an empty one", device, got, previous);
    group.allToAllSingle(got, filled(device, 1, 10 + rank), one(size, previous), one(size, next));
    requireFilled("one part", device, got, 10 + previous);
    List<Tensor> received = parts(device, size, previous, -1);
    group.allToAll(received, parts(device, size, next, 30 + rank));
    requireFilled("one of the parts", device, received.get(previous), 30 + previous);
    List<Tensor> parts = rank == 0 ? Collections.nCopies(size, filled(device, 0, 0)) : List.of();
    group.gather(parts, none, 0);
    group.scatter(none, parts, 0);
    pass(group, filled(device, 1, 20 + rank), next, got, previous);
    requireFilled("message behind empty parts", device, got, 20 + previous);
    group.allReduce(none);
    Tensor sum = filled(device, 1, rank);
    group.allReduce(sum);
    requireFilled("sum", device, sum, size * (size - 1) / 2);
    System.out.println("Java rank " + rank + " of " + size + ": empty ones exact");
  }

  private static List<Tensor> parts(CudaDevice device, int size, int place, int value) {
    return IntStream.range(0, size)
        .mapToObj(r -> filled(device, r == place ? 1 : 0, value))
        .toList();
  }

  private static long[] one(int size, int place) {
    return IntStream.range(0, size).mapToLong(r -> r == place ? 1 : 0).toArray();
  }

  /**
   * Sums and sends in several groups: all ranks, the first and the last, the even ones, a single
   * one.
   */
  private static void groups(ProcessGroup group, CudaDevice device) {
    int size = group.size();
    List<Integer> all = IntStream.range(0, size).boxed().toList();
    List<Integer> even = all.stream().filter(r -> r % 2 == 0).toList();
    for (List<Integer> ranks : List.of(all, List.of(0, size - 1), even, List.of(1))) {
      group.subgroup(ranks).ifPresent(part -> inGroup(part, ranks, device));
    }
    group.barrier();
    System.out.println("Java rank " + group.rank() + " of " + size + ": groups exact");
  }

  private static void inGroup(ProcessGroup part, List<Integer> ranks, CudaDevice device) {
    int sum = ranks.stream().mapToInt(r -> r + 1).sum();
    Tensor tensor = filled(device, COUNT, ranks.get(part.rank()) + 1);
    part.allReduce(tensor);
    requireFilled("sum of " + ranks, device, tensor, sum);
    int last = ranks.size() - 1;
    if (last > 0 && part.rank() == 0) {
      part.send(filled(device, COUNT, 5), last);
    } else if (last > 0 && part.rank() == last) {
      part.recv(tensor, 0);
      requireFilled("message in " + ranks, device, tensor, 5);
    }
  }

  /**
   * Passes messages around the ring, or sums, until the loss of a rank that kills itself is
   * noticed.
   */
  private static void loss(ProcessGroup group, CudaDevice device, boolean inSums) {
    int next = (group.rank() + 1) % group.size();
    int previous = (group.rank() + group.size() - 1) % group.size();
    Tensor own = filled(device, COUNT, group.rank());
    Tensor got = filled(device, COUNT, -1);
    long last = System.nanoTime();
    int rounds = 0;
    try {
      for (; rounds < 10_000; rounds++) {
        last = System.nanoTime();
        if (rounds == 20 && group.rank() == Integer.getInteger("lost", -1)) {
          Work _ = group.recv(got, previous, 0, CallOptions.ASYNC);
          signalItself();
        }
        if (inSums) {
          group.allReduce(got);
          Tensor _ = device.tensors().toHost(got);
        } else {
          pass(group, own, next, got, previous);
          requireFilled("message of round " + rounds, device, got, previous);
        }
      }
    } catch (TuttiException e) {
      System.out.printf(
          "Java rank %d of %d: after %d rounds and %.1f s more: %s%n",
          group.rank(), group.size(), rounds, (System.nanoTime() - last) / 1e9, e.getMessage());
      return;
    }
    throw new AssertionError("no rank was lost in " + rounds + " rounds");
  }

  private static void signalItself() {
    String signal = "-" + System.getProperty("signal", "KILL");
    String own = String.valueOf(ProcessHandle.current().pid());
    try {
      System.out.println("Java: is about to get " + signal);
      int _ = new ProcessBuilder("kill", signal, own).start().waitFor();
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Sends around the ring, out of order by tag; among Tutti ranks only. */
  private static void tags(ProcessGroup group, CudaDevice device) {
    int next = (group.rank() + 1) % group.size();
    int previous = (group.rank() + group.size() - 1) % group.size();
    int[] many = new int[COUNT];
    Arrays.fill(many, group.rank());
    Work first = group.send(device.tensors().copyOf(Tensor.of(many)), next, 7, CallOptions.ASYNC);
    Work second =
        group.send(device.tensors().copyOf(Tensor.of(group.rank())), next, 8, CallOptions.ASYNC);
    Tensor large = device.tensors().copyOf(Tensor.of(new int[COUNT]));
    Tensor small = device.tensors().copyOf(Tensor.of(-1));
    group.recv(small, previous, 8, CallOptions.ASYNC).await();
    group.recv(large, previous, 7, CallOptions.ASYNC).await();
    first.await();
    second.await();
    require("small message", device.tensors().toHost(small).toIntArray()[0] == previous);
    for (int element : device.tensors().toHost(large).toIntArray()) {
      require("large message", element == previous);
    }
    group.barrier();
    System.out.println("Java rank " + group.rank() + ": tags exact");
  }

  private static void require(String what, boolean good) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
