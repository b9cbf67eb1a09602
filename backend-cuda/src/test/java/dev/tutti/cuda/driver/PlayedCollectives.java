package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Fake NCCL collectives: each rank contributes its data, and computes its result from all data. */
final class PlayedCollectives {
  private static final int FIRST_FACTOR = 16;

  private final FakeMemory memory;
  private final PlayedGroups groups;
  private final Map<Integer, Double> factors = new ConcurrentHashMap<>();
  private final AtomicInteger nextFactor = new AtomicInteger(FIRST_FACTOR);

  PlayedCollectives(FakeMemory memory, PlayedGroups groups) {
    this.memory = memory;
    this.groups = groups;
  }

  /** Computes the results of all ranks from their inputs. */
  private interface Rule {
    byte @Nullable [] result(List<byte[]> brought);
  }

  private int collective(
      String call,
      String arguments,
      long from,
      long bytes,
      long to,
      PlayedCommunicator communicator,
      long stream,
      UnaryOperator<byte[]> own,
      Rule rule) {
    return groups.add(
        call,
        communicator,
        stream,
        PlayedGroups.Phase.TAKE,
        () -> {
          PlayedMeeting meeting = communicator.nextMeeting();
          meeting.bring(
              communicator.rank, call + " " + arguments, own.apply(memory.read(from, bytes)));
          while (!meeting.isComplete()) {
            if (communicator.isAborted()) {
              return false;
            }
            Thread.sleep(0, 50_000);
          }
          byte[] result = rule.result(meeting.take());
          if (result != null) {
            memory.write(to, result);
          }
          return true;
        });
  }

  private int reducing(
      String call,
      long from,
      long elements,
      int type,
      int op,
      long to,
      PlayedCommunicator communicator,
      long stream,
      Rule rule) {
    int kind = Math.min(op, FIRST_FACTOR);
    String arguments = elements + " of type " + type + ", operator " + kind;
    long bytes = elements * PlayedElements.dtype(type).byteSize();
    // The factor may be freed before the stream reaches this point.
    Double factor = factors.get(op);
    return collective(
        call,
        arguments,
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> factor == null ? data : PlayedElements.scaled(data, type, factor),
        rule);
  }

  int allReduce(
      long from,
      long to,
      long count,
      int type,
      int op,
      PlayedCommunicator communicator,
      long stream) {
    return reducing(
        "ncclAllReduce",
        from,
        count,
        type,
        op,
        to,
        communicator,
        stream,
        all -> PlayedElements.sum(all, type, op));
  }

  int reduce(
      long from,
      long to,
      long count,
      int type,
      int op,
      int root,
      PlayedCommunicator communicator,
      long stream) {
    boolean own = communicator.rank == root;
    return reducing(
        "ncclReduce",
        from,
        count,
        type,
        op,
        to,
        communicator,
        stream,
        all -> own ? PlayedElements.sum(all, type, op) : null);
  }

  int reduceScatter(
      long from,
      long to,
      long count,
      int type,
      int op,
      PlayedCommunicator communicator,
      long stream) {
    int part = (int) count * PlayedElements.dtype(type).byteSize();
    int start = communicator.rank * part;
    return reducing(
        "ncclReduceScatter",
        from,
        count * communicator.world.size,
        type,
        op,
        to,
        communicator,
        stream,
        all -> Arrays.copyOfRange(PlayedElements.sum(all, type, op), start, start + part));
  }

  int broadcast(
      long from, long to, long bytes, int root, PlayedCommunicator communicator, long stream) {
    return collective(
        "ncclBroadcast",
        bytes + " of " + root,
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> data,
        all -> all.get(root));
  }

  int allGather(long from, long to, long bytes, PlayedCommunicator communicator, long stream) {
    return collective(
        "ncclAllGather",
        String.valueOf(bytes),
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> data,
        all -> {
          ByteArrayOutputStream joined = new ByteArrayOutputStream();
          all.forEach(joined::writeBytes);
          return joined.toByteArray();
        });
  }

  /** Creates an operator that scales before it adds. */
  int scaledSum(long factor, int type) {
    int op = nextFactor.getAndIncrement();
    double value =
        switch (PlayedElements.dtype(type)) {
          case FLOAT32 -> Float.intBitsToFloat((int) factor);
          case FLOAT64 -> Double.longBitsToDouble(factor);
          case FLOAT16 -> Float.float16ToFloat((short) factor);
          case BFLOAT16 -> Float.intBitsToFloat((int) factor << 16);
          default -> throw new AssertionError("a factor of type " + type);
        };
    factors.put(op, value);
    return op;
  }

  void freeOperator(int op) {
    assertThat(factors.remove(op)).as("operator %d is there", op).isNotNull();
  }
}
