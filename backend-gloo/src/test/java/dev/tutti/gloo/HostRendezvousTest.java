package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.gloo.shm.StaleFiles;
import dev.tutti.gloo.topology.HostOffer;
import dev.tutti.gloo.topology.HostResult;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLateException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Lets one rank rendezvous with others whose entries in the store the test writes. */
@Timeout(300)
class HostRendezvousTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long BUDGET = 1 << 20;

  @TempDir Path directory;

  private final HashStore store = new HashStore();

  private Optional<SharedHost> meet(Store seen, int rank, int size) throws Exception {
    BackendContext context = TestContexts.of(rank, size, seen, TIMEOUT);
    return new HostRendezvous(context, directory, BUDGET, true, context.deadlineNanos())
        .meet(null, 0);
  }

  private FutureTask<Optional<SharedHost>> meeting(int rank, int size) {
    FutureTask<Optional<SharedHost>> task = new FutureTask<>(() -> meet(store, rank, size));
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  private String offered(int rank, String beacon) {
    store.set("host/beacon/" + rank, new HostOffer(beacon, BUDGET, true).toBytes());
    return beacon;
  }

  private void endsWith(int rank, HostResult result) {
    store.set("host/result/" + rank, result.toBytes());
  }

  private String invitationOf(int rank) {
    return new String(store.get("host/memory/" + rank, TIMEOUT), StandardCharsets.UTF_8);
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.toList();
    }
  }

  @Test
  void aRankThatSeesNobodySaysSoToOneThatSeesIt() throws Exception {
    offered(1, StaleFiles.newName());
    FutureTask<Optional<SharedHost>> meeting = meeting(0, 2);
    assertThat(invitationOf(0)).isEqualTo("!");
    endsWith(1, HostResult.nothing());
    assertThat(meeting.get(60, TimeUnit.SECONDS)).isEmpty();
  }

  @Test
  void aRankThatFollowsAnotherOneSaysSoToOneThatFollowsIt() throws Exception {
    Files.createFile(directory.resolve(offered(0, StaleFiles.newName())));
    offered(2, StaleFiles.newName());
    FutureTask<Optional<SharedHost>> meeting = meeting(1, 3);
    assertThat(invitationOf(1)).isEqualTo("!");
    store.set("host/memory/0", new byte[] {'!'});
    endsWith(0, HostResult.nothing());
    endsWith(2, HostResult.nothing());
    assertThat(meeting.get(60, TimeUnit.SECONDS)).isEmpty();
  }

  @Test
  void whoDoesNotComeIsNamed() throws Exception {
    offered(1, StaleFiles.newName());
    BackendContext context = TestContexts.of(0, 4, store, Duration.ofMillis(100));
    assertThatThrownBy(
            () ->
                new HostRendezvous(context, directory, BUDGET, true, context.deadlineNanos())
                    .meet(null, 0))
        .isInstanceOf(RendezvousException.class)
        .hasMessageMatching(
            "rank 0 of group g: ranks 2, 3 did not publish an offer to share memory"
                + " within \\d+ ms")
        .cause()
        .isInstanceOfSatisfying(
            PeerLateException.class, late -> assertThat(late.peer()).isEqualTo(2));
    assertThat(files()).isEmpty();
  }

  @Test
  void noFileIsLeftWhereTheStoreFails() throws Exception {
    Path other = Files.createFile(directory.resolve(offered(1, StaleFiles.newName())));
    Store failing =
        (Store)
            Proxy.newProxyInstance(
                Store.class.getClassLoader(),
                new Class<?>[] {Store.class},
                (proxy, method, arguments) -> {
                  if (method.getName().equals("set")
                      && Arrays.asList(arguments).contains("host/memory/0")) {
                    throw new StoreException("gone");
                  }
                  try {
                    return method.invoke(store, arguments);
                  } catch (InvocationTargetException e) {
                    throw e.getCause();
                  }
                });
    assertThatThrownBy(() -> meet(failing, 0, 2))
        .isInstanceOf(StoreException.class)
        .hasMessage("gone");
    assertThat(files()).containsExactly(other);
  }
}
