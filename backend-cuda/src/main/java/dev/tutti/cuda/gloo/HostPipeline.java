package dev.tutti.cuda.gloo;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;

/**
 * Runs an elementwise operation of the host part by part: while one is run, those behind it are
 * copied to the host and those before it back.
 */
final class HostPipeline {
  /*
   * A part takes memory for what is read when its copy to the host begins, and memory for what is
   * written, unless that is the same, when it is run. All of it is in one of the queues until it is
   * given back. At most AHEAD parts are ahead and AHEAD + 1 go back, each of one chunk.
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

  /** Runs an operation of the host on a part. */
  interface PartCall {
    /**
     * Runs it.
     *
     * @param in what was read, the parts of the rows one behind the other
     * @param out what is written, likewise; the same as {@code in} if it works in place
     */
    void run(Tensor in, Tensor out) throws Exception;
  }

  /**
   * Runs an operation that has begun until its results are on their way to the device.
   *
   * @param work copies
   * @param op the operation
   * @param in what it reads, or {@link DeviceRows#NONE}
   * @param out what it writes, as long, or {@code NONE}; the same object where it does so in place
   * @param length elements of each row that a part has, at least one
   * @param call runs it on a part
   * @throws UnsupportedOperationException if a tensor is not there
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
    // Without elements there is one part too: all ranks meet in it.
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
