package dev.tutti.cuda.gloo;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;

/**
 * A pipeline that runs an elementwise host operation part by part: while one part is processed,
 * later parts are copied to the host and earlier ones back.
 */
final class HostPipeline {
  /*
   * A part takes memory for its input when its copy to the host begins, and memory for its output,
   * unless that is the same, when it is processed. Every part is in one of the queues until its
   * memory is given back. At most AHEAD parts are ahead and AHEAD + 1 are on the way back, each of
   * one chunk.
   */
  private static final int AHEAD = 3;

  private final HostWork work;
  private final Operation op;
  private final ArrayDeque<HostPart> ahead = new ArrayDeque<>();
  private final ArrayDeque<HostPart> back = new ArrayDeque<>();

  private HostPipeline(HostWork work, Operation op) {
    this.work = work;
    this.op = op;
  }

  /** A host operation on a part. */
  interface PartCall {
    /**
     * Runs the operation.
     *
     * @param in the input, the parts of the rows one after another
     * @param out the output, likewise; the same as {@code in} if the operation works in place
     */
    void run(Tensor in, Tensor out) throws Exception;
  }

  /**
   * Runs an operation that has begun, until its results are on their way to the device.
   *
   * @param work makes the copies
   * @param op the operation
   * @param in the rows that it reads, or {@link DeviceRows#NONE}
   * @param out the rows that it writes, of the same length, or {@code NONE}; the same object if it
   *     works in place
   * @param length the number of elements of each row in a part, at least one
   * @param call runs the operation on a part
   * @throws UnsupportedOperationException if a tensor is not usable
   */
  static void run(
      HostWork work, Operation op, DeviceRows in, DeviceRows out, long length, PartCall call)
      throws Exception {
    work.requireUsable(in.tensors());
    work.requireUsable(out.tensors());
    HostPipeline pipeline = new HostPipeline(work, op);
    boolean good = false;
    try {
      pipeline.run(in, out, length, call);
      good = true;
    } finally {
      work.end(good, pipeline.ahead, pipeline.back);
    }
  }

  private void run(DeviceRows in, DeviceRows out, long length, PartCall call) throws Exception {
    boolean isInPlace = in == out;
    long numel = Math.max(in.numel(), out.numel());
    // Even without elements there is one part: all ranks meet in it.
    long parts = Math.max(1, Math.ceilDiv(numel, length));
    long begun = 0;
    for (long done = 0; done < parts; done++) {
      for (; begun < parts && begun < done + AHEAD; begun++) {
        long from = begun * length;
        work.begin(ahead, in, from, Math.min(length, numel - from), true, isInPlace);
      }
      HostPart read = ahead.getFirst();
      work.await(op, read);
      if (isInPlace) {
        call.run(read.host(), read.host());
        back.addLast(ahead.removeFirst());
      } else {
        long from = done * length;
        work.begin(back, out, from, Math.min(length, numel - from), false, true);
        call.run(read.host(), back.getLast().host());
        work.free(ahead.removeFirst());
      }
      work.copyBack(back.getLast());
      if (back.size() > AHEAD) {
        work.await(op, back.getFirst());
        work.free(back.removeFirst());
      }
    }
    work.enqueued(op, out.tensors());
  }
}
