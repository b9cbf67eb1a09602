package dev.tutti.cuda.driver;

import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclResult;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A fake NCCL on the streams of a fake driver. Calls stay in progress for a while, as they do for
 * nonblocking communicators. It checks that ranks make the same calls.
 */
public final class FakeNccl implements NcclCalls {
  private final PlayedCalls calls = new PlayedCalls();
  private final PlayedCommunicators communicators;
  private final PlayedGroups groups;
  private final PlayedCollectives collectives;
  private final PlayedMessages messages;
  private final AtomicLong next = new AtomicLong(1);
  private volatile boolean sharesAborts = true;
  private volatile boolean oneProcess;

  /** Creates a fake NCCL for a driver. */
  public FakeNccl(FakeCudaDriver fake) {
    communicators = new PlayedCommunicators(fake, calls);
    groups = new PlayedGroups(fake, calls);
    collectives = new PlayedCollectives(fake.memory(), groups);
    messages = new PlayedMessages(fake.memory(), groups);
  }

  /** Makes all later calls of a function return a given result. */
  public void failOn(String call, int result) {
    calls.failOn(call, result);
  }

  /** Makes all later calls of a function block until a latch is opened. */
  public void holdOn(String call, CountDownLatch latch) {
    calls.holdOn(call, latch);
  }

  /** Makes all communicators report a failure. */
  public void failAll(int result) {
    communicators.failAll(result);
  }

  /** Returns the number of existing communicators. */
  public int communicators() {
    return communicators.count();
  }

  /** Returns the number of blocked calls of a function that an abort would end. */
  public int waiting(String call) {
    return calls.waiting(call);
  }

  /** Returns how often a function was called; it must be one for which failures can be set. */
  public int calls(String call) {
    return calls.count(call);
  }

  /** Returns the color that each rank passed to a split of a communicator, by rank. */
  public Map<Integer, Integer> colors(byte[] id, int number) {
    return communicators.colors(id, number);
  }

  /** Makes an abort end the calls of one communicator only. */
  public void shareNoAborts() {
    sharesAborts = false;
  }

  /** Treats all ranks as part of one process; otherwise each has its own process. */
  public void beOneProcess() {
    oneProcess = true;
  }

  @Override
  public int version() {
    return 22809;
  }

  @Override
  public String process() {
    return oneProcess ? "the process" : "process " + next.getAndIncrement();
  }

  @Override
  public boolean sharesAborts() {
    return sharesAborts;
  }

  @Override
  public byte[] uniqueId() {
    return ByteBuffer.allocate(UNIQUE_ID_BYTES).putLong(next.getAndIncrement()).array();
  }

  @Override
  public long init(byte[] id, int size, int rank, boolean shares) {
    return communicators.init(id, size, rank, shares);
  }

  @Override
  public Child splitBlocking(long communicator, int rank) {
    return communicators.splitBlocking(communicator, rank);
  }

  @Override
  public Child split(long communicator, int color, int rank) {
    return communicators.split(communicator, color, rank);
  }

  @Override
  public int state(long communicator) {
    return communicators.get(communicator).state();
  }

  @Override
  public String lastError(long communicator) {
    return "played failure";
  }

  @Override
  public String describe(int result) {
    return "result " + result;
  }

  @Override
  public int groupStart() {
    return groups.start();
  }

  @Override
  public int groupEnd() {
    return groups.end();
  }

  @Override
  public int allReduce(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    return collectives.allReduce(
        from, to, count, type, op, communicators.get(communicator), stream);
  }

  @Override
  public int reduce(
      long from, long to, long count, int type, int op, int root, long communicator, long stream) {
    return collectives.reduce(
        from, to, count, type, op, root, communicators.get(communicator), stream);
  }

  @Override
  public int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    return collectives.reduceScatter(
        from, to, count, type, op, communicators.get(communicator), stream);
  }

  @Override
  public int broadcast(long from, long to, long bytes, int root, long communicator, long stream) {
    return collectives.broadcast(from, to, bytes, root, communicators.get(communicator), stream);
  }

  @Override
  public int allGather(long from, long to, long bytes, long communicator, long stream) {
    return collectives.allGather(from, to, bytes, communicators.get(communicator), stream);
  }

  @Override
  public int send(long from, long bytes, int peer, long communicator, long stream) {
    return messages.send(communicators.get(communicator), from, bytes, peer, stream);
  }

  @Override
  public int receive(long to, long bytes, int peer, long communicator, long stream) {
    return messages.receive(communicators.get(communicator), to, bytes, peer, stream);
  }

  @Override
  public int scaledSum(long factor, int type, long communicator) {
    PlayedCommunicator _ = communicators.get(communicator);
    return collectives.scaledSum(factor, type);
  }

  @Override
  public int freeOperator(int op, long communicator) {
    collectives.freeOperator(op);
    return NcclResult.SUCCESS;
  }

  @Override
  public int finish(long communicator) {
    PlayedCommunicator finished = communicators.get(communicator);
    if (finished.isBlocking()) {
      return calls.result("ncclCommFinalize", finished::isAborted);
    }
    int _ = calls.result("ncclCommFinalize");
    return finished.begin();
  }

  @Override
  public int destroy(long communicator) {
    return communicators.destroy(communicator);
  }

  @Override
  public int abort(long communicator) {
    return communicators.abort(communicator);
  }
}
