package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.DeviceParts;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests messages between ranks, in communicators of two, on a fake NCCL whose calls block. */
class NcclMessagePathTest {
  private static final int SIZE = 3;

  private final IllegalStateException enough = new IllegalStateException("enough");
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final HashStore store = new HashStore();
  private final List<PairMessages> messages = new ArrayList<>();
  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() {
    machine = new FakeMachine(SIZE);
    nccl = new FakeNccl(machine.fake);
    for (int rank = 0; rank < SIZE; rank++) {
      BackendContext context =
          BackendContext.builder("test", rank, SIZE, store, Until.LONG).build();
      messages.add(new PairMessages(context, machine.cuda.device(rank), nccl));
    }
  }

  @AfterEach
  void nothingIsLeft() {
    messages.forEach(PairMessages::beginClose);
    messages.forEach(each -> each.close(soon()));
    threads.close();
    Until.holds("the end of all communicators", () -> nccl.communicators() == 0);
    machine.close();
  }

  private static long soon() {
    return System.nanoTime() + Until.LONG.toNanos();
  }

  /** A send or receive without a group. */
  private static class Message implements Operation {
    private final Call call = new Call(OpType.SEND);
    final CompletableFuture<DeviceEvent> event = new CompletableFuture<>();
    final CompletableFuture<Throwable> failure = new CompletableFuture<>();
    final long deadlineNanos;

    Message(long deadlineNanos) {
      this.deadlineNanos = deadlineNanos;
    }

    @Override
    public Call call() {
      return call;
    }

    @Override
    public long sequenceNumber() {
      return 1;
    }

    @Override
    public long deadlineNanos() {
      return deadlineNanos;
    }

    @Override
    public boolean isDone() {
      return failure.isDone();
    }

    @Override
    public void complete() {}

    @Override
    public void completeFrom(int sourceRank) {}

    @Override
    public void completeWith(List<Tensor> result) {}

    @Override
    public void fail(Throwable cause, int failedRank) {
      failure.complete(cause);
    }

    @Override
    public void enqueued(DeviceEvent newEvent) {
      event.complete(newEvent);
    }

    @Override
    public void throwIfFailed() {}

    @Override
    public @Nullable TuttiException failure() {
      return null;
    }

    @Override
    public boolean parkUntilDone(long untilNanos) {
      return isDone();
    }

    boolean isAtDevice() throws Exception {
      return event.get(60, TimeUnit.SECONDS).awaitReached(soon());
    }
  }

  private NcclMessage side(Operation op, int rank, int peer, boolean sends) {
    return new NcclMessage(op, peer, sends, cell(rank), Float.BYTES, 0);
  }

  private void start(NcclMessage message, int rank) {
    messages.get(rank).start(message, machine.cuda.device(rank).defaultStream());
  }

  /** Starts a message from one rank to another; returns both sides. */
  private List<Message> start(int sender, int receiver) {
    List<Message> sides = List.of(new Message(soon()), new Message(soon()));
    start(side(sides.get(0), sender, receiver, true), sender);
    start(side(sides.get(1), receiver, sender, false), receiver);
    return sides;
  }

  private long cell(int rank) {
    return machine.cuda.device(rank).tensors().copyOf(Tensor.of(1f)).segment().address();
  }

  private void abortAtOnce() throws Exception {
    for (PairMessages each : messages) {
      threads.submit(() -> each.abort(enough)).get(60, TimeUnit.SECONDS);
    }
  }

  private void assertAborted(Message message) throws Exception {
    assertThat(message.failure.get(60, TimeUnit.SECONDS))
        .isInstanceOf(BackendException.class)
        .hasMessage("the group was aborted")
        .hasRootCause(enough);
  }

  @Test
  void anAbortDoesNotWaitForACommunicatorThatIsBeingMade() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    nccl.holdOn("ncclCommInitRankConfig", held);
    List<Message> sides = start(0, 1);
    Until.holds("both ranks in NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 2);
    abortAtOnce();
    held.countDown();
    assertAborted(sides.get(0));
    assertAborted(sides.get(1));
  }

  /** Holds the work that precedes a message which NCCL has. */
  @Test
  void anAbortKeepsTheMemoryOfAMessageUntilTheDeviceIsDone() throws Exception {
    CudaDevice device = machine.cuda.device(0);
    CountDownLatch held = machine.hold(device.defaultStream());
    long address;
    try (Arena arena = Arena.ofShared()) {
      Tensor received = device.tensors().allocate(arena, DType.FLOAT32, 1000);
      address = received.segment().address();
      Message message = new Message(soon());
      start(new NcclMessage(message, 1, false, address, Float.BYTES, 0), 0);
      start(side(new Message(soon()), 1, 0, true), 1);
      assertThat(message.event.get(60, TimeUnit.SECONDS).isReached()).isFalse();
      abortAtOnce();
    }
    List<Tensor> later = new ArrayList<>();
    later.add(device.tensors().allocate(DType.FLOAT32, 1000));
    held.countDown();
    assertThat(later.getFirst().segment().address()).isNotEqualTo(address);
    Until.holds(
        "the memory",
        () -> {
          later.add(device.tensors().allocate(DType.FLOAT32, 1000));
          return later.getLast().segment().address() == address;
        });
  }

  private int streamsMade() {
    return machine.fake.calls("cuStreamCreateWithPriority").size();
  }

  @Test
  void anAbortDoesNotWaitForAStreamThatIsBeingMade() throws Exception {
    DeviceParts parts = Parts.of(machine.cuda.device(0));
    List<CudaStream> taken = new ArrayList<>();
    int made = streamsMade();
    while (streamsMade() == made) {
      taken.add(parts.takeStream());
    }
    CountDownLatch held = new CountDownLatch(1);
    machine.fake.holdOn("cuStreamCreateWithPriority", held);
    List<Message> sides = start(0, 1);
    Until.holds("a stream that is being made", () -> streamsMade() == made + 2);
    abortAtOnce();
    threads.submit(() -> taken.forEach(parts::giveStream)).get(60, TimeUnit.SECONDS);
    held.countDown();
    assertAborted(sides.get(0));
    assertThat(sides.get(0).event).isNotDone();
  }

  @Test
  void theGroupFindsATimeoutAndNotTheWaitForTheReceiver() throws Exception {
    CudaDevice device = machine.cuda.device(0);
    NcclMessagePath path =
        new NcclMessagePath(device, threads, 0, link(device), Duration.ofHours(1));
    Message message = new Message(System.nanoTime());
    path.start(side(message, 0, 1, true), device.defaultStream().record());
    assertThatThrownBy(() -> message.failure.get(700, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    path.abort(enough);
    assertAborted(message);
    path.close(soon());
  }

  private NcclLink link(CudaDevice device) {
    return new NcclLink(nccl, device, store, "0:1", new NcclLink.Place("rank 0", 0, 2));
  }

  @Test
  void anErrorInAMessageDoesNotEndThePath() throws Exception {
    AssertionError error = new AssertionError("played");
    Message first =
        new Message(0) {
          @Override
          public long deadlineNanos() {
            throw error;
          }
        };
    Message second = new Message(soon());
    CudaDevice device = machine.cuda.device(0);
    NcclMessagePath path = new NcclMessagePath(device, threads, 0, link(device));
    path.start(side(first, 0, 1, false), device.defaultStream().record());
    path.start(side(second, 0, 1, false), device.defaultStream().record());
    assertThat(first.failure.get(60, TimeUnit.SECONDS)).isSameAs(error);
    Until.holds("NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 1);
    path.abort(enough);
    assertAborted(second);
    path.close(soon());
  }

  @Test
  void allPathsCloseWithinOneDeadline() throws Exception {
    for (int sender = 0; sender < SIZE; sender++) {
      for (Message side : start(sender, (sender + 1) % SIZE)) {
        assertThat(side.isAtDevice()).isTrue();
      }
    }
    CountDownLatch held = new CountDownLatch(1);
    nccl.holdOn("ncclCommFinalize", held);
    long start = System.nanoTime();
    messages.forEach(PairMessages::beginClose);
    for (PairMessages each : messages) {
      each.close(start + TimeUnit.MILLISECONDS.toNanos(100));
    }
    int left = nccl.communicators();
    long nanos = System.nanoTime() - start;
    assertThat(nanos).isLessThan(TimeUnit.SECONDS.toNanos(30));
    if (nanos < TimeUnit.SECONDS.toNanos(5)) { // from then on, they are aborted
      assertThat(left).isEqualTo(2 * SIZE);
    }
    held.countDown();
  }
}
