package org.example.central;

import static org.example.central.Mailbox.ANY;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.IntFunction;

/**
 * One rank of a group whose collectives all go through rank 0.
 *
 * <p>Cost of a collective for n ranks: 2 steps; rank 0 receives and sends the parts of n - 1 ranks.
 */
final class CentralBackend implements Backend {
  /*
   * Every collective is one exchange: each rank sends its parts to rank 0, which waits for all of
   * them, decides what each rank gets, and sends that. No rank can therefore be more than one
   * collective ahead, and the parts need no sequence number. A description of the call travels with
   * the parts; if one differs from that of rank 0, the collective fails rather than mixing up data.
   *
   * Rank 0 reduces in rank order and sends the same bytes to all.
   */
  private final int rank;
  private final int size;
  private final Mailbox mailbox;
  private final Map<Integer, Link> links;

  /** The decision, on rank 0, what each rank gets, from the parts of all ranks. */
  private interface Center extends Function<List<List<byte[]>>, IntFunction<List<byte[]>>> {}

  CentralBackend(int rank, int size, Mailbox mailbox, Map<Integer, Link> links) {
    this.rank = rank;
    this.size = size;
    this.mailbox = mailbox;
    this.links = links;
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    List<byte[]> mine = rank == root ? List.of(bytes(tensor)) : List.of();
    List<byte[]> theirs = exchange(op, call(op, tensor, root), mine, all -> _ -> all.get(root));
    if (rank != root) {
      store(tensor, theirs.get(0));
    }
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    Center center =
        all -> {
          List<byte[]> result = List.of(reduced(all, 0, tensor.dtype(), reduceOp));
          return _ -> result;
        };
    List<byte[]> mine = List.of(scaled(tensor, reduceOp));
    store(tensor, exchange(op, call(op, tensor, reduceOp.kind()), mine, center).get(0));
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    Center center =
        all -> {
          List<byte[]> result = List.of(reduced(all, 0, tensor.dtype(), reduceOp));
          return receiver -> receiver == root ? result : List.of();
        };
    List<byte[]> got =
        exchange(
            op,
            call(op, tensor, reduceOp.kind() + " to " + root),
            List.of(scaled(tensor, reduceOp)),
            center);
    if (rank == root) {
      store(tensor, got.get(0));
    }
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    Center center = all -> _ -> firstOfEach(all);
    String call = call(op, input.dtype(), numels(outputs));
    store(outputs, exchange(op, call, List.of(bytes(input)), center));
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    allGather(op, equalParts(output), input);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    Center center = all -> receiver -> receiver == root ? firstOfEach(all) : List.of();
    store(outputs, exchange(op, call(op, input, root), List.of(bytes(input)), center));
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    Center center = all -> receiver -> List.of(all.get(root).get(receiver));
    store(output, exchange(op, call(op, output, root), bytes(inputs), center).get(0));
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    DType dtype = output.dtype();
    List<byte[]> mine = new ArrayList<>();
    for (Tensor input : inputs) {
      mine.add(scaled(input, reduceOp));
    }
    Center center = all -> receiver -> List.of(reduced(all, receiver, dtype, reduceOp));
    String call = call(op, dtype, reduceOp.kind(), numels(inputs));
    store(output, exchange(op, call, mine, center).get(0));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    reduceScatter(op, output, equalParts(input), reduceOp);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    Center center =
        all ->
            receiver -> {
              List<byte[]> parts = new ArrayList<>();
              all.forEach(sender -> parts.add(sender.get(receiver)));
              return parts;
            };
    store(outputs, exchange(op, call(op, inputs.get(0).dtype()), bytes(inputs), center));
  }

  @Override
  public void barrier(Operation op) throws Exception {
    exchange(op, call(op), List.of(), all -> _ -> List.of());
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    link(peer).send(op, tag, tensor.dtype().label(), bytes(tensor));
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    mailbox.receive(op, tensor, peer, tag);
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    mailbox.receive(op, tensor, ANY, tag);
  }

  @Override
  public void abort(Throwable cause) {
    mailbox.abort(cause);
    close();
  }

  @Override
  public void close() {
    links.values().forEach(Link::close);
  }

  /** Sends this rank's parts to rank 0, and returns what rank 0 decides for this rank. */
  private List<byte[]> exchange(Operation op, String call, List<byte[]> mine, Center center)
      throws Exception {
    if (rank != 0) {
      CompletableFuture<Void> _ = link(0).sendPart(new Parcel(call, mine).encode());
      return Parcel.decode(mailbox.takePart(0, op.deadlineNanos())).parts();
    }
    List<List<byte[]>> all = new ArrayList<>();
    all.add(mine);
    for (int peer = 1; peer < size; peer++) {
      Parcel parcel = Parcel.decode(mailbox.takePart(peer, op.deadlineNanos()));
      if (!parcel.call().equals(call)) {
        throw new PeerMismatchException(
            "rank " + peer + " called " + parcel.call() + " where rank 0 called " + call);
      }
      all.add(parcel.parts());
    }
    IntFunction<List<byte[]>> decided = center.apply(all);
    List<CompletableFuture<Void>> sent = new ArrayList<>();
    for (int peer = 1; peer < size; peer++) {
      sent.add(link(peer).sendPart(new Parcel(call, decided.apply(peer)).encode()));
    }
    // This rank may close only after that.
    awaitSent(sent, op.deadlineNanos());
    return decided.apply(0);
  }

  private static void awaitSent(List<CompletableFuture<Void>> sent, long deadlineNanos)
      throws Exception {
    for (int i = 0; i < sent.size(); i++) {
      long left = deadlineNanos - System.nanoTime();
      try {
        // An interrupt must not end a wait of a backend; join() keeps it for later.
        sent.get(i).copy().orTimeout(left, TimeUnit.NANOSECONDS).join();
      } catch (CompletionException e) {
        Throwable cause = e.getCause();
        if (cause instanceof TimeoutException) {
          String late = "rank " + (i + 1) + " does not read the data sent to it";
          throw (TimeoutException) new TimeoutException(late).initCause(e);
        }
        throw cause instanceof Exception failure ? failure : e;
      }
    }
  }

  private Link link(int peer) {
    Link link = links.get(peer);
    if (link == null) {
      throw new IllegalArgumentException("rank " + rank + " has no link to rank " + peer);
    }
    return link;
  }

  private static String call(Operation op, Object... details) {
    StringBuilder text = new StringBuilder(op.type().label());
    for (Object detail : details) {
      text.append(' ')
          .append(detail instanceof Tensor t ? t.dtype().label() + "*" + t.numel() : detail);
    }
    return text.toString();
  }

  /** Returns the sizes of parts, which must be the same on all ranks. */
  private static List<Long> numels(List<Tensor> tensors) {
    return tensors.stream().map(Tensor::numel).toList();
  }

  private static List<byte[]> firstOfEach(List<List<byte[]>> all) {
    return all.stream().map(parts -> parts.get(0)).toList();
  }

  /** Reduces one part of each rank, in rank order. */
  private static byte[] reduced(List<List<byte[]>> all, int part, DType dtype, ReduceOp reduceOp) {
    byte[] result = new byte[all.get(0).get(part).length];
    MemorySegment[] inputs = new MemorySegment[all.size()];
    for (int from = 0; from < all.size(); from++) {
      byte[] input = all.get(from).get(part);
      if (input.length != result.length) {
        throw new PeerMismatchException(
            "rank " + from + " sent " + input.length + " bytes, rank 0 has " + result.length);
      }
      inputs[from] = MemorySegment.ofArray(input);
    }
    long count = result.length / dtype.byteSize();
    HostReducer.combineAll(
        reduceOp.kind(), dtype, MemorySegment.ofArray(result), 0, inputs, 0, count);
    return result;
  }

  /** Copies a tensor and multiplies the copy by this rank's factor, if it has one. */
  private static byte[] scaled(Tensor tensor, ReduceOp reduceOp) {
    byte[] bytes = bytes(tensor);
    if (reduceOp.kind() == ReduceOp.Kind.PREMUL_SUM) {
      MemorySegment memory = MemorySegment.ofArray(bytes);
      HostReducer.scale(tensor.dtype(), memory, 0, tensor.numel(), reduceOp.factor());
    }
    return bytes;
  }

  private List<Tensor> equalParts(Tensor tensor) {
    Tensor flat = tensor.flatten();
    long numel = flat.numel() / size;
    List<Tensor> parts = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      parts.add(flat.narrow(0, i * numel, numel));
    }
    return parts;
  }

  private static List<byte[]> bytes(List<Tensor> tensors) {
    return tensors.stream().map(CentralBackend::bytes).toList();
  }

  private static byte[] bytes(Tensor tensor) {
    return tensor.segment().asSlice(0, tensor.byteSize()).toArray(ValueLayout.JAVA_BYTE);
  }

  private static void store(List<Tensor> tensors, List<byte[]> parts) {
    for (int i = 0; i < tensors.size(); i++) {
      store(tensors.get(i), parts.get(i));
    }
  }

  private static void store(Tensor tensor, byte[] bytes) {
    if (bytes.length != tensor.byteSize()) {
      throw new IllegalStateException("expected " + tensor + " but got " + bytes.length + " bytes");
    }
    MemorySegment.copy(MemorySegment.ofArray(bytes), 0, tensor.segment(), 0, bytes.length);
  }
}
