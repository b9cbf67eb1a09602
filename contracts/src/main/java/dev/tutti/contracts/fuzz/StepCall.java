package dev.tutti.contracts.fuzz;

import dev.tutti.Batch;
import dev.tutti.CallOptions;
import dev.tutti.Codec;
import dev.tutti.DType;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.contracts.ContractSubject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** The calls of one step on one rank, whose results are compared with the reference. */
final class StepCall extends StepTensors {
  private static final int PLACES = 64;

  private final List<Work> works = new ArrayList<>();

  /**
   * Creates the calls of a step.
   *
   * @param group the step's
   * @param async whether the calls return before they are done
   */
  StepCall(
      ContractSubject subject,
      ProgramReference reference,
      Step step,
      ProcessGroup group,
      boolean async) {
    super(subject, reference, step, group, async);
  }

  /** Returns the works to await. */
  List<Work> works() {
    return works;
  }

  /** Waits for the end, in one of several ways. */
  void await() throws Exception {
    for (Work work : works) {
      switch ((int) (reference.die(step, 7, rank) % 3)) {
        case 0 -> work.await();
        case 1 -> require(work.await(group.timeout()), "await(timeout) returned false");
        default -> {
          List<Tensor> _ = work.toCompletableFuture().get();
        }
      }
      require(work.isCompleted(), "an awaited work is not completed");
    }
  }

  /** Starts the step; if it is not asynchronous, its calls are done on return. */
  void start() {
    switch (step.kind()) {
      case BROADCAST -> broadcast();
      case ALL_REDUCE -> allReduce();
      case ALL_REDUCE_COALESCED -> allReduceCoalesced();
      case ALL_REDUCE_SPARSE -> allReduceSparse();
      case REDUCE -> reduce();
      case ALL_GATHER -> allGather();
      case ALL_GATHER_INTO -> allGatherInto();
      case ALL_GATHER_COALESCED -> allGatherCoalesced();
      case GATHER -> gather();
      case SCATTER -> scatter();
      case REDUCE_SCATTER -> reduceScatter();
      case REDUCE_SCATTER_INTO -> reduceScatterInto();
      case REDUCE_SCATTER_COALESCED -> reduceScatterCoalesced();
      case ALL_TO_ALL -> allToAll();
      case ALL_TO_ALL_SINGLE -> allToAllSingle();
      case BARRIER -> call(group::barrier, () -> group.barrier(options));
      case MONITORED_BARRIER ->
          group.monitoredBarrier(
              group.timeout(), step.root() == 0 ? MissingRanks.ALL : MissingRanks.FIRST);
      case BATCH -> batch();
      case ALL_GATHER_OBJECT ->
          checkObjects(group.allGatherObject(object(rank), Codec.BYTES), this::object);
      case BROADCAST_OBJECT -> broadcastObject();
      case GATHER_OBJECT -> gatherObject();
      case SCATTER_OBJECT -> scatterObject();
      case SYMMETRIC -> symmetric();
      case MESSAGE -> message();
      case RING -> ring();
      case BATCH_OF_MESSAGES -> batchOfMessages();
      case ANY_SOURCE -> anySource();
      case SPLIT, SUBGROUP, CLOSE -> throw new IllegalArgumentException(step.toString());
    }
  }

  private ReduceOp op() {
    return ProgramReference.op(step.op(), rank);
  }

  /** Returns whether to call a method without options. */
  private boolean isBrief() {
    return !async && reference.die(step, 8, rank) % 2 == 0;
  }

  /** Calls a method without options, or its variant with options. */
  private void call(Runnable brief, Supplier<Work> full) {
    if (isBrief()) {
      brief.run();
    } else {
      add(full.get());
    }
  }

  private boolean isInPlace() {
    return reference.die(step, 9, rank) % 3 == 0;
  }

  private void broadcast() {
    byte[] content = moved(0, step.root(), step.count());
    Tensor tensor =
        shaped(
            "tensor",
            0,
            step.count(),
            rank == step.root() ? content : blank(step.count()),
            content);
    call(
        () -> group.broadcast(tensor, step.root()),
        () -> group.broadcast(tensor, step.root(), options));
  }

  private void add(Work work) {
    works.add(work);
  }

  private Tensor reducedTensor(String name, int slot, int count) {
    return shaped(name, slot, count, brought(slot, count), reduced(slot, count));
  }

  private void allReduce() {
    Tensor tensor = reducedTensor("tensor", 0, step.count());
    call(() -> group.allReduce(tensor, op()), () -> group.allReduce(tensor, op(), options));
  }

  private void allReduceCoalesced() {
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < step.counts().size(); i++) {
      tensors.add(reducedTensor("tensors[" + i + "]", i, step.counts().get(i)));
    }
    add(group.allReduceCoalesced(tensors, op(), options));
  }

  private void allReduceSparse() {
    int[] places = reference.places(step, rank, PLACES);
    Tensor indices =
        hosted(
            DType.INT64,
            ProgramReference.encoded(DType.INT64, Arrays.stream(places).asLongStream().toArray()),
            1,
            places.length);
    Tensor values =
        hosted(
            step.dtype(),
            ProgramReference.encoded(step.dtype(), reference.addends(step, rank)),
            places.length);
    elements += places.length;
    Work work = group.allReduce(Tensor.sparse(indices, values, PLACES), ReduceOp.SUM, options);
    add(work);
    checks.add(() -> checkSparse(work));
  }

  private Tensor hosted(DType dtype, byte[] content, long... shape) {
    Tensor host = Tensor.allocate(dtype, shape);
    host.segment().copyFrom(java.lang.foreign.MemorySegment.ofArray(content));
    Tensor tensor = subject.allocate(dtype, shape);
    subject.copyIn(host, tensor);
    return tensor;
  }

  private void checkSparse(Work work) {
    work.await();
    Tensor sum = work.result().get(0);
    long[] places = subject.copyOut(sum.indices()).toLongArray();
    double[] values = subject.copyOut(sum.values()).toDoubleArray();
    long[][] expected = reference.sparseSum(step, size, PLACES);
    double[] dense = new double[PLACES];
    long last = -1;
    for (int i = 0; i < places.length; i++) {
      require(places[i] > last, "places of a sparse sum are not sorted and unique");
      require(expected[1][(int) places[i]] > 0, "no rank named place " + places[i]);
      last = places[i];
      dense[(int) last] = values[i];
    }
    for (int i = 0; i < dense.length; i++) {
      require(
          dense[i] == expected[0][i],
          "sparse sum at place " + i + " is " + dense[i] + ", expected " + expected[0][i]);
    }
  }

  private void reduce() {
    int count = step.count();
    boolean root = rank == step.root();
    Tensor tensor = shaped("tensor", 0, count, brought(0, count), root ? reduced(0, count) : null);
    call(
        () -> group.reduce(tensor, op(), step.root()),
        () -> group.reduce(tensor, op(), step.root(), options));
  }

  private void allGather() {
    List<Tensor> outputs = outputs(from -> moved(0, from, step.counts().get(from)));
    int count = step.counts().get(rank);
    Tensor input = input("input", 0, count, moved(0, rank, count));
    add(group.allGather(outputs, input, options));
  }

  private void allGatherInto() {
    int count = step.count();
    byte[] own = moved(0, rank, count);
    byte[] all = gathered(0, count);
    Tensor output;
    Tensor input;
    if (isInPlace()) {
      byte[] before = blank(count * size);
      System.arraycopy(own, 0, before, rank * own.length, own.length);
      output = tensor("output", OUTPUT, count * size, before, all);
      input = output.narrow(0, (long) rank * count, count);
    } else {
      output = output("output", 0, count * size, all);
      input = input("input", 0, count, own);
    }
    call(
        () -> group.allGatherInto(output, input),
        () -> group.allGatherInto(output, input, options));
  }

  private void allGatherCoalesced() {
    List<Tensor> outputs = new ArrayList<>();
    List<Tensor> inputs = new ArrayList<>();
    for (int i = 0; i < step.counts().size(); i++) {
      int count = step.counts().get(i);
      outputs.add(output("outputs[" + i + "]", i, count * size, gathered(i, count)));
      inputs.add(input("inputs[" + i + "]", i, count, moved(i, rank, count)));
    }
    add(group.allGatherIntoCoalesced(outputs, inputs, options));
  }

  private void gather() {
    int count = step.count();
    boolean root = rank == step.root();
    List<Tensor> outputs = root ? outputs(from -> moved(0, from, count)) : List.of();
    Tensor input = input("input", 0, count, moved(0, rank, count));
    add(group.gather(outputs, input, step.root(), options));
  }

  private void scatter() {
    int count = step.count();
    boolean root = rank == step.root();
    List<Tensor> inputs = root ? inputs(to -> moved(to, step.root(), count)) : List.of();
    Tensor output = output("output", 0, count, moved(rank, step.root(), count));
    add(group.scatter(output, inputs, step.root(), options));
  }

  private void reduceScatter() {
    List<Tensor> inputs = inputs(to -> brought(to, step.counts().get(to)));
    int count = step.counts().get(rank);
    Tensor output = output("output", 0, count, reduced(rank, count));
    add(group.reduceScatter(output, inputs, op(), options));
  }

  private void reduceScatterInto() {
    int count = step.count();
    byte[] before = broughtParts(0, count);
    byte[] own = reduced(rank, count);
    Tensor output;
    Tensor input;
    if (isInPlace()) {
      byte[] after = before.clone();
      System.arraycopy(own, 0, after, rank * own.length, own.length);
      input = tensor("input", 0, count * size, before, after);
      output = input.narrow(0, (long) rank * count, count);
    } else {
      input = input("input", 0, count * size, before);
      output = output("output", 0, count, own);
    }
    call(
        () -> group.reduceScatterInto(output, input, op()),
        () -> group.reduceScatterInto(output, input, op(), options));
  }

  private void reduceScatterCoalesced() {
    List<Tensor> outputs = new ArrayList<>();
    List<Tensor> inputs = new ArrayList<>();
    for (int i = 0; i < step.counts().size(); i++) {
      int count = step.counts().get(i);
      inputs.add(input("inputs[" + i + "]", i, count * size, broughtParts(i, count)));
      outputs.add(output("outputs[" + i + "]", i, count, reduced(i * size + rank, count)));
    }
    add(group.reduceScatterIntoCoalesced(outputs, inputs, op(), options));
  }

  private int pair(int from, int to) {
    return step.counts().get(from * size + to);
  }

  private void allToAll() {
    List<Tensor> outputs = outputs(from -> moved(rank, from, pair(from, rank)));
    List<Tensor> inputs = inputs(to -> moved(to, rank, pair(rank, to)));
    add(group.allToAll(outputs, inputs, options));
  }

  private void allToAllSingle() {
    byte[] sent = new byte[0];
    byte[] received = new byte[0];
    long[] toEach = new long[size];
    long[] fromEach = new long[size];
    for (int peer = 0; peer < size; peer++) {
      sent = ProgramReference.joined(sent, moved(peer, rank, pair(rank, peer)));
      received = ProgramReference.joined(received, moved(rank, peer, pair(peer, rank)));
      toEach[peer] = pair(rank, peer);
      fromEach[peer] = pair(peer, rank);
    }
    int width = step.dtype().byteSize();
    Tensor input = input("input", 0, sent.length / width, sent);
    Tensor output = output("output", 0, received.length / width, received);
    boolean even = step.counts().stream().distinct().count() == 1;
    add(
        even
            ? group.allToAllSingle(output, input, options)
            : group.allToAllSingle(output, input, fromEach, toEach, options));
  }

  private void run(Batch batch) {
    if (async) {
      add(batch.start());
    } else {
      batch.run();
    }
  }

  private void batch() {
    int count = step.count();
    run(
        group
            .batch()
            .allReduce(reducedTensor("tensor", 0, count), op())
            .allGatherInto(
                output("output", 1, count * size, gathered(1, count)),
                input("input", 1, count, moved(1, rank, count)))
            .reduceScatterInto(
                output("output", 2, count, reduced(2 * size + rank, count)),
                input("input", 2, count * size, broughtParts(2, count)),
                op()));
  }

  private byte[] object(int from) {
    byte[] bytes = reference.moved(step, 0, from, step.counts().get(from));
    elements += bytes.length;
    return bytes;
  }

  private void checkObjects(List<byte[]> actual, IntFunction<byte[]> expected) {
    require(actual.size() == size, actual.size() + " objects of " + size + " ranks");
    for (int from = 0; from < size; from++) {
      checkObject(actual.get(from), expected.apply(from), from);
    }
  }

  private void checkObject(byte[] actual, byte[] expected, int from) {
    require(
        Arrays.equals(actual, expected),
        "the object of rank %s has %s bytes and differs at %s from the expected %s"
            .formatted(from, actual.length, Arrays.mismatch(actual, expected), expected.length));
  }

  private void broadcastObject() {
    int root = step.root();
    byte[] own = rank == root ? object(root) : null;
    checkObject(group.broadcastObject(own, root, Codec.BYTES), object(root), root);
  }

  private void gatherObject() {
    List<byte[]> gathered = group.gatherObject(object(rank), step.root(), Codec.BYTES);
    if (rank == step.root()) {
      checkObjects(gathered, this::object);
    } else {
      require(gathered.isEmpty(), "a rank that is not the root gathered objects");
    }
  }

  private void scatterObject() {
    List<byte[]> values =
        rank == step.root() ? IntStream.range(0, size).mapToObj(this::object).toList() : List.of();
    checkObject(group.scatterObject(values, step.root(), Codec.BYTES), object(rank), step.root());
  }

  private void symmetric() {
    try (SymmetricMemory memory = group.allocateSymmetric(8L * size)) {
      int channel = step.tag() % memory.channels();
      for (int to = 0; to < size; to++) {
        subject.copyIn(
            Tensor.of(reference.die(step, to, rank)), memory.buffer(to, DType.INT64, 8L * rank, 1));
      }
      memory.barrier(channel, group.timeout());
      long[] cells = subject.copyOut(memory.buffer(rank, DType.INT64, 0, size)).toLongArray();
      for (int from = 0; from < size; from++) {
        long expected = reference.die(step, rank, from);
        require(
            cells[from] == expected,
            "cell " + from + " of symmetric memory is " + cells[from] + ", not " + expected);
      }
      memory.barrier(channel, group.timeout());
    }
  }

  private void message() {
    int count = step.count();
    if (rank == step.root()) {
      Tensor tensor = sent(0, count);
      if (isBrief() && step.tag() == 0) {
        group.send(tensor, step.peer());
      } else {
        add(group.send(tensor, step.peer(), step.tag(), options));
      }
      return;
    }
    Tensor tensor = received(0, step.root(), count);
    if (isBrief() && step.tag() == 0) {
      group.recv(tensor, step.root());
    } else {
      add(group.recv(tensor, step.root(), step.tag(), options));
    }
  }

  private void ring() {
    if (size == 1) {
      return;
    }
    int count = step.count();
    int previous = (rank + size - 1) % size;
    add(group.recv(received(0, previous, count), previous, step.tag(), CallOptions.ASYNC));
    add(group.send(sent(0, count), (rank + 1) % size, step.tag(), options));
    if (!async) {
      works.forEach(Work::await);
    }
  }

  private void batchOfMessages() {
    int count = step.count();
    Batch batch = group.batch();
    for (int distance = 1; distance < size; distance++) {
      int from = (rank + size - distance) % size;
      int to = (rank + distance) % size;
      batch.send(sent(to, count), to, step.tag());
      byte[] expected = moved(rank, from, count);
      batch.recv(output("tensor received from " + from, from, count, expected), from, step.tag());
    }
    run(batch);
  }

  private void anySource() {
    int root = step.root();
    if (rank != root) {
      add(group.send(sent(0, step.count()), root, step.tag(), options));
      return;
    }
    Set<Integer> sources = new HashSet<>();
    boolean byName = step.peer() != root;
    if (byName) {
      add(
          group.recv(
              received(0, step.peer(), step.count()), step.peer(), step.tag(), CallOptions.ASYNC));
      sources.add(step.peer());
    }
    for (int i = byName ? 2 : 1; i < size; i++) {
      anyMessage(sources);
    }
    if (!async) {
      works.forEach(Work::await);
    }
  }

  private void anyMessage(Set<Integer> sources) {
    int count = step.count();
    Canary canary =
        new Canary(
            "tensor received from any rank",
            subject,
            layout(OUTPUT),
            step.dtype(),
            1,
            count,
            blank(count));
    elements += count;
    Work work = group.recvAnySource(canary.tensor(), step.tag(), options);
    add(work);
    checks.add(
        () -> {
          work.await();
          int source = work.sourceRank();
          require(sources.add(source), "two messages came from rank " + source);
          canary.check(moved(0, source, count));
        });
  }
}
