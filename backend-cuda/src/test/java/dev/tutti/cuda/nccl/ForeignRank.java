package dev.tutti.cuda.nccl;

import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import java.time.Duration;

/** A fake PyTorch rank: it has NCCL and the keys of c10d, but nothing of Tutti. */
final class ForeignRank {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final NcclCalls nccl;
  private final Store store;
  private final String prefix;
  private final int rank;
  private final int size;
  final CudaDevice device;

  /**
   * Creates a rank.
   *
   * @param prefix the prefix of the group's keys
   */
  ForeignRank(NcclCalls nccl, CudaDevice device, Store store, String prefix, int rank, int size) {
    this.nccl = nccl;
    this.device = device;
    this.store = store;
    this.prefix = prefix;
    this.rank = rank;
    this.size = size;
  }

  static long soon() {
    return System.nanoTime() + LIMIT.toNanos();
  }

  private Communicator make(String key, boolean offers, int place, int ranks) {
    if (offers) {
      store.set(prefix + key, nccl.uniqueId());
    }
    byte[] id = store.get(prefix + key, LIMIT);
    return Communicator.create(
        nccl, Parts.of(device).context(), id, ranks, place, false, soon(), () -> {});
  }

  /** Creates the communicator of the group. */
  Communicator main() {
    return make("0", rank == 0, rank, size);
  }

  /** Creates the communicator of this rank and a peer. */
  Communicator pair(int peer) {
    boolean lower = rank < peer;
    String key = lower ? rank + ":" + peer : peer + ":" + rank;
    return make(key, lower, lower ? 0 : 1, 2);
  }

  /** Runs calls as one NCCL group, and waits for the device. */
  void run(Communicator communicator, Communicator.CommunicatorCall call) {
    Parts.of(device).context().enter();
    communicator.runGroup("a call", soon(), call);
    device.defaultStream().await(LIMIT);
  }

  void send(Communicator communicator, int peer, Tensor tensor) {
    run(
        communicator,
        (calls, handle) ->
            calls.send(tensor.segment().address(), tensor.byteSize(), peer, handle, 0));
  }

  void receive(Communicator communicator, int peer, Tensor tensor) {
    run(
        communicator,
        (calls, handle) ->
            calls.receive(tensor.segment().address(), tensor.byteSize(), peer, handle, 0));
  }

  void sum(Communicator communicator, Tensor tensor) {
    long address = tensor.segment().address();
    run(
        communicator,
        (calls, handle) -> calls.allReduce(address, address, tensor.numel(), 7, 0, handle, 0));
  }

  Tensor floats(float... values) {
    return device.tensors().copyOf(Tensor.of(values));
  }

  float[] read(Tensor tensor) {
    return device.tensors().toHost(tensor).toFloatArray();
  }
}
