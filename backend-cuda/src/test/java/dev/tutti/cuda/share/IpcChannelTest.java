package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cuda.Until;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("counts the descriptors of the process")
class IpcChannelTest {
  private static final String NAME = "tutti-ipc-test-" + System.nanoTime();

  private final HashStore store = new HashStore();
  @TempDir private Path directory;

  @AfterEach
  void nothingIsLeft() throws IOException {
    assertThat(Descriptors.count(NAME)).as("open descriptors").isZero();
    assertThat(store.listKeys()).as("keys").isEmpty();
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files).as("socket files").isEmpty();
    }
  }

  private IpcChannel open(StoreExchange exchange) {
    return IpcChannel.open(directory, exchange, Ranks.soon());
  }

  private static int create(int rank) {
    return Descriptors.create(NAME + "-" + rank);
  }

  /** Returns the ranks that the descriptors belong to, and closes the descriptors. */
  private static List<Integer> ranksOf(int... fds) {
    List<Integer> ranks = new ArrayList<>();
    for (int fd : fds) {
      String target = Descriptors.target(fd);
      ranks.add(Integer.valueOf(target.replaceAll(".*" + NAME + "-(\\d+).*", "$1")));
      IpcChannel.closeFd(fd);
    }
    return ranks;
  }

  @Test
  void allRanksGetAllDescriptorsManyTimes() throws Exception {
    long sockets = Descriptors.count("socket:");
    for (int i = 0; i < 100; i++) {
      int size = 2 + i % 4;
      List<List<Integer>> all =
          Ranks.run(
              store,
              size,
              exchange -> {
                try (IpcChannel channel = open(exchange)) {
                  int own = create(exchange.rank());
                  int[] fds = channel.allGatherFds(own, Ranks.soon());
                  assertThat(fds[exchange.rank()]).isEqualTo(own);
                  // No rank closes its socket before all have sent.
                  exchange.barrier(Ranks.soon());
                  return ranksOf(fds);
                }
              });
      assertThat(all)
          .hasSize(size)
          .allSatisfy(got -> assertThat(got).isEqualTo(IntStream.range(0, size).boxed().toList()));
    }
    assertThat(Descriptors.count("socket:")).isLessThanOrEqualTo(sockets);
  }

  @Test
  void aRootsDescriptorGoesToAll() throws Exception {
    List<Integer> got =
        Ranks.run(
            store,
            3,
            exchange -> {
              try (IpcChannel channel = open(exchange)) {
                int sum = 0;
                for (int root = 0; root < 3; root++) {
                  int own = exchange.rank() == root ? create(root) : -1;
                  sum = 10 * sum + ranksOf(channel.broadcastFds(root, own, Ranks.soon())).get(0);
                }
                exchange.barrier(Ranks.soon());
                return sum;
              }
            });
    assertThat(got).containsExactly(12, 12, 12);
  }

  @Test
  void manySendsFillNoQueueForEver() throws Exception {
    int count = 100;
    Ranks.run(
        store,
        2,
        exchange -> {
          int peer = 1 - exchange.rank();
          try (IpcChannel channel = open(exchange)) {
            int own = create(exchange.rank());
            for (int i = 0; i < count; i++) {
              channel.sendFd(peer, own, Ranks.soon());
            }
            for (int i = 0; i < count; i++) {
              assertThat(ranksOf(channel.recvFd(peer, Ranks.soon()))).containsExactly(peer);
            }
            assertThat(ranksOf(own)).containsExactly(exchange.rank());
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  @Test
  void whatNobodyAskedForIsClosed() throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          try (IpcChannel channel = open(exchange)) {
            if (exchange.rank() == 0) {
              int own = create(0);
              channel.sendFd(1, own, Ranks.soon());
              channel.sendFd(1, own, Ranks.soon());
              IpcChannel.closeFd(own);
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  @Test
  void messagesWithoutTheTokenAreThrownAway() throws Exception {
    // Rank 0 would notice that rank 1 has gone on to the barrier.
    CountDownLatch looked = new CountDownLatch(1);
    Ranks.run(
        store,
        2,
        exchange -> {
          try (IpcChannel channel = open(exchange)) {
            if (exchange.rank() == 0) {
              try {
                sendStrange(channel);
                assertThat(failedReceive(channel))
                    .isInstanceOf(RendezvousException.class)
                    .hasMessage(
                        "rank 0: no descriptor arrived from rank 1 in time;"
                            + " 1 messages without the token arrived");
              } finally {
                looked.countDown();
              }
            } else {
              Ranks.await(looked);
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  /** Receives until a deadline that the thread did not miss before it looked for messages. */
  private static Throwable failedReceive(IpcChannel channel) {
    for (long millis = 50; ; millis *= 4) {
      long limit = millis;
      Throwable thrown = catchThrowable(() -> channel.recvFd(1, Ranks.inMillis(limit)));
      if (thrown == null || !thrown.toString().endsWith("in time") || limit > 10_000) {
        return thrown;
      }
    }
  }

  private static void sendStrange(IpcChannel channel) {
    int socket = LinuxSockets.datagramSocket();
    int fd = create(9);
    try (Arena arena = Arena.ofConfined()) {
      FdMessage message =
          FdMessage.of(
              arena,
              FdMessage.address(arena, channel.path().toString()),
              1,
              0,
              new byte[FdMessage.TOKEN_BYTES],
              fd);
      assertThat(LinuxSockets.send(socket, message.header(), 0)).isPositive();
    } finally {
      LinuxSockets.close(fd);
      LinuxSockets.close(socket);
    }
  }

  @Test
  void whoIsGoneIsNamed() throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          IpcChannel channel = open(exchange);
          if (exchange.rank() == 1) {
            channel.close();
          }
          exchange.barrier(Ranks.soon());
          if (exchange.rank() == 0) {
            int own = create(0);
            assertThatThrownBy(() -> channel.sendFd(1, own, Ranks.soon()))
                .isInstanceOf(RendezvousException.class)
                .hasMessageStartingWith("rank 0: no process listens on the socket of rank 1, /");
            IpcChannel.closeFd(own);
          }
          channel.close();
          assertThatThrownBy(() -> channel.recvFd(1 - exchange.rank(), Ranks.soon()))
              .isInstanceOf(IllegalStateException.class);
          return null;
        });
  }

  @Test
  void whatDoesNotComeEndsAtTheDeadline() throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          try (IpcChannel channel = open(exchange)) {
            assertThatThrownBy(() -> channel.recvFd(1 - exchange.rank(), Ranks.inMillis(30)))
                .isInstanceOf(RendezvousException.class)
                .hasMessageContaining("no descriptor arrived from rank " + (1 - exchange.rank()));
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  @Test
  void whoWaitsForARankThatHasGoneOnIsTold() throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          try (IpcChannel channel = open(exchange)) {
            if (exchange.rank() == 0) {
              assertThatThrownBy(() -> channel.recvFd(1, Ranks.soon()))
                  .isInstanceOf(BackendException.class)
                  .hasMessage("rank 0: rank 1 has moved on without sending a descriptor");
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  @Test
  void cancelEndsAWait() throws Exception {
    // Rank 0 would notice that rank 1 has gone on to the barrier.
    CountDownLatch ended = new CountDownLatch(1);
    Ranks.run(
        store,
        2,
        exchange -> {
          try (IpcChannel channel = open(exchange)) {
            if (exchange.rank() == 0) {
              FutureTask<Integer> waits =
                  new FutureTask<>(() -> channel.recvFd(1, Ranks.inMillis(120_000)));
              Thread.ofPlatform().daemon().start(waits);
              channel.cancel();
              try {
                assertThatThrownBy(() -> waits.get(60, TimeUnit.SECONDS))
                    .hasRootCauseInstanceOf(RendezvousException.class)
                    .hasStackTraceContaining("the group ended while descriptors were being passed");
              } finally {
                ended.countDown();
              }
            } else {
              Ranks.await(ended);
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
  }

  /** A socket that is closed while a thread waits on it could be mistaken for the next one. */
  @Test
  void aCloseDuringAWaitTakesNothingFromTheNextChannel() throws Exception {
    Ranks.run(
        store,
        2,
        exchange -> {
          StoreExchange next = new StoreExchange(store, "next", exchange.rank(), 2);
          IpcChannel channel = open(exchange);
          FutureTask<Integer> waits =
              new FutureTask<>(() -> channel.recvFd(1 - exchange.rank(), Ranks.inMillis(60_000)));
          Thread waiting = Thread.ofPlatform().daemon().start(waits);
          Until.holds(
              "the wait",
              () ->
                  Stream.of(waiting.getStackTrace())
                      .anyMatch(frame -> frame.getMethodName().equals("awaitReadable")));
          channel.close();
          try (IpcChannel second = open(next)) {
            int own = create(exchange.rank());
            int[] fds = second.allGatherFds(own, Ranks.soon());
            assertThat(ranksOf(fds)).containsExactly(0, 1);
            next.barrier(Ranks.soon());
          }
          assertThatThrownBy(() -> waits.get(60, TimeUnit.SECONDS))
              .hasRootCauseInstanceOf(RendezvousException.class);
          exchange.barrier(Ranks.soon());
          return null;
        });
  }

  @Test
  void aLongPathIsRefusedOnAllRanks() throws Exception {
    Path deep = directory.resolve("d".repeat(110));
    Ranks.run(
        store,
        2,
        exchange -> {
          Path own = exchange.rank() == 0 ? deep : directory;
          assertThatThrownBy(() -> IpcChannel.open(own, exchange, Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessageStartingWith("rank " + exchange.rank())
              .hasMessageContaining("rank 0: the path of a socket can have 107 bytes at most");
          return null;
        });
  }

  @Test
  void aDirectoryThatIsNotThereIsNamed() {
    Path none = directory.resolve("none");
    assertThatThrownBy(
            () -> IpcChannel.open(none, new StoreExchange(store, "t", 0, 1), Ranks.soon()))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(none.toString())
        .hasMessageContaining("is its directory writable?");
  }

  @Test
  void aDirectoryOfSomebodyElseIsNamed() throws Exception {
    assumeFalse(System.getProperty("user.name").equals("root"), "root may write anywhere");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("r-xr-xr-x"));
    try {
      assertThatThrownBy(
              () -> IpcChannel.open(directory, new StoreExchange(store, "t", 0, 1), Ranks.soon()))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("is its directory writable?");
    } finally {
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    }
  }
}
