package dev.tutti.fake.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.AbortedException;
import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.ExpelledException;
import dev.tutti.GroupClosedException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.RendezvousException;
import dev.tutti.Tensor;
import dev.tutti.TooFewRanksException;
import dev.tutti.fake.FakeProvider;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests groups that go on with other members. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ReconfigureTest {
  private static final ThreadedProvider THREADED = new ThreadedProvider();

  private static float sum(ProcessGroup group, float own) {
    Tensor tensor = Tensor.of(own);
    group.allReduce(tensor);
    return tensor.toFloatArray()[0];
  }

  private static GroupOptions joining(HashStore store) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withProvider(THREADED)
        .withTime(Simulation.time())
        .withTimeout(Duration.ofMinutes(10));
  }

  @Simulated
  void theRanksThatAreLeftGoOn() throws Exception {
    List<Float> sums =
        Simulation.ranks(
            3,
            Simulation.store(),
            THREADED,
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(options)) {
                assertThat(sum(group, rank + 1)).isEqualTo(6);
                if (rank == 1) {
                  return 0f;
                }
                assertThatThrownBy(() -> sum(group, 1)).isInstanceOf(CollectiveException.class);
                try (ProcessGroup next = group.shrink()) {
                  assertThat(next.name()).startsWith("0~");
                  assertThat(next.size()).isEqualTo(2);
                  assertThat(next.rank()).isEqualTo(rank / 2);
                  assertThat(next.globalRanks()).containsExactly(0, 1);
                  assertThat(group.isClosed()).isTrue();
                  assertThatThrownBy(group::shrink).isInstanceOf(GroupClosedException.class);
                  ProcessGroup half = next.split(0, -rank).orElseThrow();
                  assertThat(half.globalRanks()).containsExactly(1, 0);
                  assertThat(sum(half, rank)).isEqualTo(2);
                  return sum(next, rank + 1);
                }
              }
            });
    assertThat(sums).containsExactly(4f, 0f, 4f);
  }

  @Simulated
  void aProcessJoinsAndGoesAgain() throws Exception {
    HashStore store = Simulation.store();
    CountDownLatch joined = new CountDownLatch(1);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread _ =
        Simulation.start(
            "joiner",
            () -> {
              try (ProcessGroup group = ProcessGroup.join(joining(store))) {
                assertThat(group.rank()).isEqualTo(2);
                assertThat(sum(group, 4)).isEqualTo(7);
              } catch (Throwable e) {
                failure.set(e);
              }
              joined.countDown();
            });
    List<Float> sums =
        Simulation.ranks(
            2,
            store,
            THREADED,
            (options, rank) -> {
              ProcessGroup group = ProcessGroup.init(options);
              assertThat(sum(group, rank + 1)).isEqualTo(3);
              ProcessGroup more = group.grow(1);
              assertThat(sum(more, rank + 1)).isEqualTo(7);
              joined.await();
              try (ProcessGroup less = more.shrink()) {
                return sum(less, rank + 1);
              }
            });
    assertThat(failure.get()).isNull();
    assertThat(sums).containsExactly(3f, 3f);
  }

  @Simulated
  void whoComesTooLateIsToldAndMayJoinAgain() throws Exception {
    HashStore store = Simulation.store();
    List<Float> sums =
        Simulation.ranks(
            3,
            store,
            THREADED,
            (options, rank) -> {
              ProcessGroup group = ProcessGroup.init(options);
              assertThat(sum(group, 1)).isEqualTo(3);
              if (rank == 2) {
                SimulatedWorld.sleep(Duration.ofMinutes(4));
                assertThatThrownBy(group::shrink)
                    .isInstanceOf(ExpelledException.class)
                    .hasMessageContaining("this process was rank 2 of group 0")
                    .hasMessageContaining("call ProcessGroup.join() to join again");
                group.close();
                try (ProcessGroup again = ProcessGroup.join(joining(store))) {
                  return sum(again, 8);
                }
              }
              group.abort("enough");
              ProcessGroup two = group.shrink();
              assertThat(sum(two, rank + 1)).isEqualTo(3);
              SimulatedWorld.sleep(Duration.ofMinutes(4));
              try (ProcessGroup three = two.grow(1)) {
                return sum(three, rank + 1);
              }
            });
    assertThat(sums).containsExactly(11f, 11f, 11f);
  }

  /** Provides backends of which two do not reach each other once the group has changed. */
  private static BackendProvider parted(int one, int other) {
    return proxy(
        BackendProvider.class,
        (method, arguments) -> {
          if (!method.getName().equals("create")) {
            return method.invoke(THREADED, arguments);
          }
          BackendContext context = (BackendContext) arguments[0];
          List<Integer> all = context.globalRanks();
          if (context.group().startsWith("0~") && all.containsAll(List.of(one, other))) {
            SimulatedWorld.sleep(context.timeout());
            throw new TimeoutException("a rank does not answer");
          }
          int self = all.get(context.rank());
          int peer = self == one ? other : self == other ? one : -1;
          Backend inner = THREADED.create(context);
          return proxy(
              Backend.class,
              (of, given) ->
                  of.getName().equals("unreachedPeers") && all.contains(peer)
                      ? List.of(all.indexOf(peer))
                      : of.invoke(inner, given));
        });
  }

  private interface Handler {
    Object handle(Method method, Object[] arguments) throws Throwable;
  }

  private static <T> T proxy(Class<T> type, Handler handler) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, arguments) -> {
              try {
                return handler.handle(method, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            }));
  }

  @Simulated
  void ofTwoThatDoNotReachEachOtherTheLaterIsLeftOut() throws Exception {
    othersGoOnWithoutRank2(
        parted(0, 2),
        refused ->
            refused
                .isInstanceOf(ExpelledException.class)
                .hasMessageContaining("it and another member do not reach each other"));
  }

  /** Checks what rank 2 gets when all shrink a group of three, and that the others continue. */
  private static void othersGoOnWithoutRank2(
      BackendProvider provider, Consumer<AbstractThrowableAssert<?, ?>> check) throws Exception {
    List<Float> sums =
        Simulation.ranks(
            3,
            Simulation.store(),
            provider,
            (options, rank) -> {
              ProcessGroup group = ProcessGroup.init(options);
              assertThat(sum(group, 1)).isEqualTo(3);
              group.revoke("to change");
              if (rank == 2) {
                check.accept(assertThatThrownBy(group::shrink));
                group.close();
                return 0f;
              }
              try (ProcessGroup next = group.shrink()) {
                return sum(next, rank + 1);
              }
            });
    assertThat(sums).containsExactly(3f, 3f, 0f);
  }

  /** Provides backends that meet once more in the store when they close, the later ranks later. */
  private static BackendProvider meetingInTheEnd(List<String> met) {
    return proxy(
        BackendProvider.class,
        (method, arguments) -> {
          if (!method.getName().equals("create")) {
            return method.invoke(THREADED, arguments);
          }
          BackendContext context = (BackendContext) arguments[0];
          Backend inner = THREADED.create(context);
          context.store().add("open", 1);
          return proxy(
              Backend.class,
              (of, given) -> {
                if (of.getName().equals("close")) {
                  SimulatedWorld.sleep(Duration.ofSeconds(10L * context.rank()));
                  met.add(context.group() + " " + context.store().add("open", -1));
                }
                return of.invoke(inner, given);
              });
        });
  }

  @Simulated
  void aBackendFindsItsKeysUntilAllHaveClosedIt() throws Exception {
    List<String> met = Collections.synchronizedList(new ArrayList<>());
    Simulation.groups(
        2,
        Simulation.store(),
        meetingInTheEnd(met),
        group -> {
          ProcessGroup second = group.shrink();
          second.barrier();
          ProcessGroup third = second.shrink();
          third.barrier();
          third.close();
          return group;
        });
    assertThat(met).containsExactly("0 1", "0 0", "0~2 1", "0~2 0", "0~4 1", "0~4 0");
  }

  /** Provides backends of which one has a device that has failed. */
  private static BackendProvider failedOn(int rank) {
    return proxy(
        BackendProvider.class,
        (method, arguments) -> {
          if (!method.getName().equals("create")) {
            return method.invoke(THREADED, arguments);
          }
          boolean hasFailed = ((BackendContext) arguments[0]).rank() == rank;
          Object inner = method.invoke(THREADED, arguments);
          return proxy(
              Backend.class,
              (of, given) ->
                  of.getName().equals("reasonAgainstReconfigure") && hasFailed
                      ? Optional.of("the device has failed")
                      : of.invoke(inner, given));
        });
  }

  @Simulated
  void theOthersGoOnWithoutARankWhoseDeviceHasFailed() throws Exception {
    othersGoOnWithoutRank2(
        failedOn(2),
        refused ->
            refused
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessage("rank 2 cannot continue after group 0: the device has failed"));
  }

  /** Provides backends that one rank cannot create in a generation after the first. */
  private static BackendProvider notCreatedOn(int rank) {
    return proxy(
        BackendProvider.class,
        (method, arguments) -> {
          if (method.getName().equals("create")
              && ((BackendContext) arguments[0]).rank() == rank
              && !((BackendContext) arguments[0]).group().equals("0")) {
            SimulatedWorld.sleep(Duration.ofMillis(100));
            throw new IllegalStateException("no memory on the device");
          }
          return method.invoke(THREADED, arguments);
        });
  }

  @Simulated
  void theOthersGoOnAtOnceWithoutARankThatCannotCreateItsBackend() throws Exception {
    List<Duration> took = Collections.synchronizedList(new ArrayList<>());
    List<String> sums =
        Simulation.ranks(
            3,
            Simulation.store(),
            notCreatedOn(2),
            (options, rank) -> {
              ProcessGroup group = ProcessGroup.init(options.withTimeout(Duration.ofSeconds(2)));
              assertThat(sum(group, 1)).isEqualTo(3);
              long began = options.time().nanoTime();
              if (rank == 2) {
                assertThatThrownBy(group::shrink)
                    .isInstanceOf(BackendException.class)
                    .hasMessageMatching(
                        "this process cannot continue as rank 2 of group 0~\\d+, and the others"
                            + " continue without it: .*no memory on the device")
                    .hasRootCauseMessage("no memory on the device");
                assertThat(group.isClosed()).isTrue();
                return "left";
              }
              try (ProcessGroup next = group.shrink()) {
                took.add(Duration.ofNanos(options.time().nanoTime() - began));
                return next.name() + " of " + next.size() + ": " + sum(next, rank + 1);
              }
            });
    assertThat(sums).containsExactly("0~5 of 2: 3.0", "0~5 of 2: 3.0", "left");
    assertThat(took).hasSize(2).allMatch(each -> each.toMillis() < 1000);
  }

  @Simulated
  void aGroupThatCannotGrowGoesOnAsItWas() throws Exception {
    List<Float> sums =
        Simulation.groups(
            2,
            Simulation.store(),
            THREADED,
            group -> {
              Throwable thrown = catchThrowable(() -> group.grow(1));
              assertThat(thrown)
                  .isInstanceOf(TooFewRanksException.class)
                  .hasMessageContaining("0 instead of 1 processes came to join");
              return sum(group, 1);
            });
    assertThat(sums).containsExactly(2f, 2f);
  }

  @Simulated
  void tooFewThatAreLeftDoNotGoOn() throws Exception {
    Simulation.ranks(
        3,
        Simulation.store(),
        THREADED,
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(options)) {
            assertThat(sum(group, 1)).isEqualTo(3);
            if (rank < 2) {
              assertThatThrownBy(() -> sum(group, 1)).isInstanceOf(CollectiveException.class);
              assertThatThrownBy(() -> group.reconfigure(ReconfigureOptions.DEFAULT.withSize(3, 3)))
                  .isInstanceOf(TooFewRanksException.class)
                  .hasMessageContaining("2 members are ready, and at least 3 are needed");
              try (ProcessGroup two = group.shrink()) {
                assertThat(sum(two, 1)).isEqualTo(2);
              }
            }
          }
          return rank;
        });
  }

  @Simulated
  void whoIsNotAskedGivesUp() throws Exception {
    HashStore store = Simulation.store();
    Simulation.groups(
        2,
        store,
        THREADED,
        group -> {
          if (group.rank() == 0) {
            assertThatThrownBy(() -> ProcessGroup.join(joining(store)))
                .isInstanceOf(RendezvousException.class)
                .hasMessageContaining("no member of the job at the given store asked this process");
          }
          return group;
        });
  }

  @Simulated
  void revokingEndsOperationsAndBlamesNobody() throws Exception {
    Simulation.groups(
        2,
        Simulation.store(),
        THREADED,
        group -> {
          if (group.rank() == 1) {
            group.revoke("a host is to go");
          }
          assertThatThrownBy(() -> sum(group, 1))
              .isInstanceOfSatisfying(
                  AbortedException.class, e -> assertThat(e.failedRank()).isEmpty())
              .hasMessageContaining("revoked the group: a host is to go");
          return group;
        });
  }

  @Simulated
  void whatCannotChangeIsRefused() throws Exception {
    Simulation.groups(
        2,
        Simulation.store(),
        THREADED,
        group -> {
          assertThat(group.capabilities().has(Feature.RECONFIGURE)).isTrue();
          Optional<ProcessGroup> half = group.split(0, 0);
          assertThatThrownBy(half.orElseThrow()::shrink)
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("call it on the group of all ranks");
          return group;
        });
    GroupOptions fake = Simulation.options(0, 1, Simulation.store(), new FakeProvider());
    try (ProcessGroup group = ProcessGroup.init(fake)) {
      assertThatThrownBy(group::shrink)
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("backend 'fake' cannot change the members of a group");
    }
    assertThatThrownBy(() -> ProcessGroup.join(fake))
        .isInstanceOf(UnsupportedOperationException.class);
  }
}
