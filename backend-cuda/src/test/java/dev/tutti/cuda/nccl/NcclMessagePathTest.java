package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;
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
import dev.tutti.cuda.access.StreamReserve;
import dev.tutti.cuda.collective.MessageMatcher;
import dev.tutti.cuda.collective.MessagePath;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests messages between two ranks on a fake NCCL whose calls block. */
class NcclMessagePathTest {
  private final IllegalStateException enough = new IllegalStateException("enough");
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final HashStore store = new HashStore();
  private final List<NcclMessages> messages = new ArrayList<>();
  private final List<RankLinks> ends = new ArrayList<>();
  private final CompletableFuture<Integer> lost = new CompletableFuture<>();
  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() throws Exception {
    machine = new FakeMachine(2);
    nccl = new FakeNccl(machine.fake);
    for (RankLinks links : links()) {
      int rank = messages.size();
      CudaDevice device = machine.cuda.device(rank);
      ends.add(links);
      messages.add(
          new NcclMessages(
              device, nccl, store, links, rank, 2, true, (cause, peer) -> lost.complete(peer)));
    }
  }

  private List<RankLinks> links() throws Exception {
    List<Future<RankLinks>> opened = new ArrayList<>();
    for (int r = 0; r < 2; r++) {
      StoreExchange exchange = new StoreExchange(store, "links", r, 2);
      opened.add(
          threads.submit(
              () ->
                  RankLinks.open(
                      InetAddress::getLoopbackAddress, null, JobToken.NONE, exchange, soon())));
    }
    return List.of(
        opened.get(0).get(60, TimeUnit.SECONDS), opened.get(1).get(60, TimeUnit.SECONDS));
  }

  @AfterEach
  void nothingIsLeft() {
    messages.forEach(NcclMessages::beginClose);
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

  /** Starts a message from one rank to the other; returns both sides. */
  private List<Message> start(int sender) {
    List<Message> sides = List.of(new Message(soon()), new Message(soon()));
    messages.get(sender).send(sides.get(0), 1 - sender, 0, cell(sender), 4);
    messages.get(1 - sender).receive(sides.get(1), sender, 0, cell(1 - sender), 4);
    return sides;
  }

  private long cell(int rank) {
    return machine.cuda.device(rank).tensors().copyOf(Tensor.of(1f)).segment().address();
  }

  private void abortAtOnce() throws Exception {
    for (NcclMessages each : messages) {
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
    List<Message> sides = start(0);
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
      messages.get(0).receive(message, 1, 0, address, 4);
      messages.get(1).send(new Message(soon()), 0, 0, cell(1), 4);
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
    StreamReserve reserve = access().reserve(machine.cuda.device(0));
    List<CudaStream> taken = new ArrayList<>();
    int made = streamsMade();
    while (streamsMade() == made) {
      taken.add(messages.get(0).takeStream());
    }
    CountDownLatch held = new CountDownLatch(1);
    machine.fake.holdOn("cuStreamCreateWithPriority", held);
    List<Message> sides = start(0);
    Until.holds("a stream that is being made", () -> streamsMade() == made + 2);
    abortAtOnce();
    threads.submit(() -> taken.forEach(reserve::give)).get(60, TimeUnit.SECONDS);
    held.countDown();
    assertAborted(sides.get(0));
    assertThat(sides.get(0).event).isNotDone();
  }

  @Test
  void theGroupFindsATimeoutAndNotTheWaitForTheReceiver() throws Exception {
    NcclMessagePath path =
        new NcclMessagePath(
            messages.get(0), 1, 0, messages.get(0).link(1, true), Duration.ofHours(1));
    Message message = new Message(System.nanoTime());
    path.start(message, cell(0), 4, machine.cuda.device(0).defaultStream().record(), -1);
    assertThatThrownBy(() -> message.failure.get(700, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    path.abort(enough);
    assertAborted(message);
    path.close(soon());
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
    NcclMessagePath path =
        new NcclMessagePath(messages.get(0), 1, 1, messages.get(0).link(1, false));
    CudaStream stream = machine.cuda.device(0).defaultStream();
    path.start(first, cell(0), 4, stream.record(), 1);
    path.start(second, cell(0), 4, stream.record(), 1);
    assertThat(first.failure.get(60, TimeUnit.SECONDS)).isSameAs(error);
    Until.holds("NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 1);
    path.abort(enough);
    assertAborted(second);
    path.close(soon());
  }

  @Test
  void allPathsCloseWithinOneDeadline() throws Exception {
    for (int sender = 0; sender < 2; sender++) {
      for (Message side : start(sender)) {
        assertThat(side.isAtDevice()).isTrue();
      }
    }
    CountDownLatch held = new CountDownLatch(1);
    nccl.holdOn("ncclCommFinalize", held);
    long start = System.nanoTime();
    messages.forEach(NcclMessages::beginClose);
    for (NcclMessages each : messages) {
      each.close(start + TimeUnit.MILLISECONDS.toNanos(100));
    }
    int left = nccl.communicators();
    long nanos = System.nanoTime() - start;
    assertThat(nanos).isLessThan(TimeUnit.SECONDS.toNanos(30));
    if (nanos < TimeUnit.SECONDS.toNanos(5)) { // from then on, they are aborted
      assertThat(left).isEqualTo(8);
    }
    held.countDown();
  }

  /** Lets a process exit while another one waits for its message. */
  @Test
  void aPeerThatDiesIsNamedWithoutAStore() throws Exception {
    Message message = new Message(soon());
    messages.get(0).receive(message, 1, 0, cell(0), 4);
    ends.get(1).close();
    assertThat(message.failure.get(60, TimeUnit.SECONDS))
        .isInstanceOfSatisfying(PeerLostException.class, e -> assertThat(e.peer()).isOne())
        .hasMessage("rank 0: rank 1 is gone, or its group failed: its links were closed");
    assertThat(lost.get(60, TimeUnit.SECONDS)).isOne();
  }

  @Test
  void aPeerThatClosesEndsItsMessagesOnly() throws Exception {
    Message message = new Message(soon());
    messages.get(0).receive(message, 1, 0, cell(0), 4);
    messages.get(1).beginClose();
    assertThat(message.failure.get(60, TimeUnit.SECONDS)).hasMessage("rank 1 closed the group");
    assertThatThrownBy(() -> messages.get(0).receive(new Message(soon()), 1, 0, cell(0), 4))
        .hasMessage("rank 1 closed the group");
    assertThatThrownBy(() -> messages.get(0).send(new Message(soon()), 1, 0, cell(0), 4))
        .hasMessage("rank 1 closed the group");
    messages.get(0).beginClose();
    assertThat(lost).isNotDone();
  }

  @Test
  void aLostLinkIsToldAlsoWhereNothingWaits() throws Exception {
    CompletableFuture<Throwable> told = new CompletableFuture<>();
    CudaDevice device = machine.cuda.device(0);
    NcclMessagePath path =
        new NcclMessagePath(messages.get(0), 1, 0, messages.get(0).link(1, true));
    @Nullable MessagePath[] paths = {null, path};
    for (RankLinks links : links()) {
      try (MessageMatcher matcher =
          new MessageMatcher(
              device,
              links,
              0,
              null,
              paths,
              paths,
              (cause, peer) -> {
                assertThat(peer).isOne();
                told.complete(cause);
              })) {
        matcher.fail(new IOException("rank 1 is gone"), 1);
        assertThat(told.get(60, TimeUnit.SECONDS))
            .isInstanceOfSatisfying(
                PeerLostException.class, lost -> assertThat(lost.peer()).isOne())
            .hasMessage("rank 1 is gone");
        assertThatThrownBy(() -> matcher.receive(new Message(soon()), 1, 0, cell(0), 4))
            .isInstanceOfSatisfying(
                PeerLostException.class, lost -> assertThat(lost.peer()).isOne())
            .hasMessage("rank 1 is gone");
      }
    }
  }

  @Test
  void thePathsOfALargeGroupHaveOneBlockEach() {
    assertThat(NcclMessages.mostBlocks(2)).isEqualTo(16);
    assertThat(NcclMessages.mostBlocks(4)).isEqualTo(16);
    assertThat(NcclMessages.mostBlocks(8)).isEqualTo(6);
    assertThat(NcclMessages.mostBlocks(25)).isEqualTo(2);
    assertThat(NcclMessages.mostBlocks(26)).isOne();
    assertThat(NcclMessages.mostBlocks(1000)).isOne();
  }
}
