package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.nccl.NcclCalls.Child;
import dev.tutti.cuda.nccl.NcclException;
import dev.tutti.cuda.nccl.NcclResult;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Lets ranks join fake communicators, and keeps track of existing ones by handle. */
final class PlayedCommunicators {
  private static final String KIND = "communicator";

  private final FakeCudaDriver fake;
  private final PlayedCalls calls;
  private final Map<Long, PlayedWorld> worlds = new ConcurrentHashMap<>();
  private final Map<Long, PlayedCommunicator> living = new ConcurrentHashMap<>();

  PlayedCommunicators(FakeCudaDriver fake, PlayedCalls calls) {
    this.fake = fake;
    this.calls = calls;
  }

  int count() {
    return living.size();
  }

  void failAll(int result) {
    living.values().forEach(each -> each.fail(result));
  }

  PlayedCommunicator get(long handle) {
    PlayedCommunicator known = living.get(handle);
    assertThat(known).as("the communicator is there").isNotNull();
    return known;
  }

  /** Adds a rank to the communicator with an id. */
  long init(byte[] id, int size, int rank, boolean shares) {
    int _ = fake.contexts().requireDevice("ncclCommInitRankConfig");
    PlayedWorld world = worlds.computeIfAbsent(key(id), key -> new PlayedWorld(size));
    assertThat(world.size).as("size on all ranks").isEqualTo(size);
    world.requireAlike(shares);
    return make(world, rank);
  }

  private static long key(byte[] id) {
    return ByteBuffer.wrap(id).getLong();
  }

  private long make(PlayedWorld world, int rank) {
    PlayedCommunicator made = new PlayedCommunicator(world, rank, null);
    long handle = fake.make(KIND);
    made.fail(calls.result("ncclCommInitRankConfig"));
    living.put(handle, made);
    return handle;
  }

  /** Begins to create a communicator of the same ranks whose calls block. */
  Child splitBlocking(long handle, int rank) {
    PlayedCommunicator parent = beginSplit(handle);
    assertThat(parent.world.isShared()).as("it shares what an abort sets").isTrue();
    PlayedCommunicator made = parent.block(rank);
    long own = fake.make(KIND);
    living.put(own, made);
    return () -> made.world.isComplete() && living.containsKey(own) ? own : 0;
  }

  /** Begins to create the communicators of the ranks that pass the same color. */
  Child split(long handle, int color, int rank) {
    PlayedCommunicator parent = beginSplit(handle);
    assertThat(parent.world.isShared()).as("it shares, which ranks of PyTorch do not").isFalse();
    return parent.split(color, rank, this::make);
  }

  private PlayedCommunicator beginSplit(long handle) {
    int result = calls.result("ncclCommSplit");
    if (result != NcclResult.SUCCESS) {
      throw new NcclException("ncclCommSplit failed", result);
    }
    PlayedCommunicator parent = get(handle);
    assertThat(parent.isIdle()).as("nothing is in progress").isTrue();
    return parent;
  }

  /** Returns the color that each rank passed to a split of the communicator with an id. */
  Map<Integer, Integer> colors(byte[] id, int number) {
    return worlds.get(key(id)).split(number);
  }

  int destroy(long handle) {
    return end("ncclCommDestroy", handle, false);
  }

  int abort(long handle) {
    return end("ncclCommAbort", handle, true);
  }

  private int end(String call, long handle, boolean aborts) {
    int _ = fake.contexts().requireDevice(call);
    PlayedCommunicator ended = get(handle);
    if (aborts) {
      ended.abort();
    }
    int _ = calls.result(call);
    living.remove(handle);
    fake.destroy(call, handle, KIND);
    PlayedCommunicator child = ended.unfinishedChild();
    if (child != null) {
      living.forEach(
          (made, each) -> {
            if (each.equals(child) && living.remove(made, child)) {
              fake.destroy(call, made, KIND);
            }
          });
    }
    return NcclResult.SUCCESS;
  }
}
