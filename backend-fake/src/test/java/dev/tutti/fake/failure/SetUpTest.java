package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.BackendException;
import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests joining a job in which a rank fails to join, and when the others are notified. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SetUpTest {
  private final ScriptedProvider provider = new ScriptedProvider();
  private int late;
  private int closed;

  /** Returns what each of some ranks throws as it joins, which must be at once. */
  private List<Throwable> failAtOnce(int size) throws Exception {
    List<Throwable> failures =
        Simulation.ranks(
            size,
            Simulation.store(),
            provider,
            (options, rank) -> catchThrowable(() -> ProcessGroup.init(options)));
    assertThat(Simulation.now()).isZero();
    return failures;
  }

  @Simulated
  void aRankThatCannotSetUpFailsTheOthersAtOnce() throws Exception {
    provider.create =
        context -> {
          if (context.rank() == 1) {
            throw new IllegalStateException("no such interface: eth7");
          }
          context.store().get("address/1", context.timeout());
        };
    List<Throwable> failures = failAtOnce(3);
    assertThat(failures.get(1))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("no such interface: eth7");
    for (int rank : new int[] {0, 2}) {
      assertThat(failures.get(rank))
          .isInstanceOf(PeerFailedException.class)
          .hasMessageContaining("rank 1")
          .hasMessageContaining("no such interface: eth7");
      CollectiveException failure = (CollectiveException) failures.get(rank);
      assertThat(failure.failedRank()).hasValue(1);
      assertThat(failure.opType()).isEqualTo(OpType.INIT);
    }
  }

  @Simulated
  void anErrorDuringSetUpFailsTheOthersAtOnce() throws Exception {
    provider.create =
        context -> {
          if (context.rank() == 1) {
            throw new OutOfMemoryError("no more threads");
          }
          context.store().get("address/1", context.timeout());
        };
    List<Throwable> failures = failAtOnce(2);
    assertThat(failures.get(1))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("no more threads")
        .hasRootCauseInstanceOf(OutOfMemoryError.class);
    assertThat(failures.get(0))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 1")
        .hasMessageContaining("no more threads");
  }

  @Simulated
  void aTimeoutOfAnotherRankIsAFailureToMeet() throws Exception {
    provider.create =
        context -> {
          if (context.rank() == 1) {
            context.store().await(List.of("never"), Duration.ofSeconds(60));
          }
          throw new TimeoutException("rank 2 did not connect");
        };
    List<Throwable> failures =
        Simulation.ranks(
            2,
            Simulation.store(),
            provider,
            (options, rank) -> catchThrowable(() -> ProcessGroup.init(options)));
    assertThat(Simulation.now()).isZero();
    for (Throwable failure : failures) {
      assertThat(failure)
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 2 did not connect");
    }
  }

  /** The rank that waits for the others is notified too, whichever of the two comes first. */
  @Simulated
  void ranksWithDifferentBackendsAreNamedAtOnce() throws Exception {
    for (int first = 0; first < 2; first++) {
      int earlier = first;
      CountDownLatch begun = new CountDownLatch(1);
      provider.create =
          context -> {
            begun.countDown();
            context.store().get("never", context.timeout());
          };
      List<Throwable> failures =
          Simulation.ranks(
              2,
              Simulation.store(),
              provider,
              (options, rank) -> {
                if (rank == earlier) {
                  return catchThrowable(() -> ProcessGroup.init(options));
                }
                begun.await();
                return catchThrowable(
                    () -> ProcessGroup.init(options.withProvider(new ThreadedProvider())));
              });
      assertThat(Simulation.now()).isZero();
      int later = 1 - earlier;
      String text =
          ("the ranks of the job have different backends for cpu: rank %d/2 has 'scripted', but"
                  + " rank %d has 'threaded'; TUTTI_BACKEND")
              .formatted(earlier, later);
      assertThat(failures).hasSize(2).allSatisfy(e -> assertThat(e).hasMessageContaining(text));
      assertThat(failures.get(later)).isInstanceOf(RendezvousException.class);
      assertThat(failures.get(earlier)).isInstanceOf(PeerFailedException.class);
    }
  }

  @Simulated
  void aRankThatCannotSetUpFailsThoseWhoHave() throws Exception {
    HashStore store = Simulation.store();
    CountDownLatch joined = new CountDownLatch(1);
    provider.create =
        context -> {
          if (context.rank() == 1) {
            joined.await();
            throw new IllegalStateException("out of sockets");
          }
        };
    List<Throwable> failures =
        Simulation.ranks(
            2,
            store,
            provider,
            (options, rank) -> {
              if (rank == 1) {
                return catchThrowable(() -> ProcessGroup.init(options));
              }
              try (ProcessGroup group = ProcessGroup.init(options)) {
                joined.countDown();
                CollectiveException failure = Simulation.failure(group);
                assertThat(Simulation.now()).isZero();
                return failure;
              }
            });
    assertThat(failures)
        .hasSize(2)
        .allSatisfy(failure -> assertThat(failure).hasMessageContaining("out of sockets"));
  }

  private Throwable joinAlone(GroupOptions options) {
    return catchThrowable(() -> ProcessGroup.init(options));
  }

  private GroupOptions alone() {
    return Simulation.options(0, 2, Simulation.store(), provider);
  }

  @Simulated
  void aPeerThatABackendLosesEndsSetUp() {
    provider.create =
        context -> {
          int peer = 1 - context.rank();
          context
              .onFailure()
              .failed(new PeerLostException(peer, "its connection ended", null), peer);
          context.store().get("never", context.timeout());
        };
    assertThat(joinAlone(alone()))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("its connection ended")
        .hasMessageContaining("rank 1 did not register in the store")
        .hasRootCauseInstanceOf(PeerLostException.class);
    assertThat(Simulation.now()).isZero();
  }

  /** Setup uses up the whole timeout once, although each of the waits may take as long. */
  @Simulated
  void allWaitsOfSetUpTogetherTakeTheTimeOutOnce() {
    Duration timeout = Duration.ofSeconds(2);
    provider.create =
        context -> {
          for (int i = 0; i < 60; i++) {
            try {
              context.store().get("never", timeout);
            } catch (StoreTimeoutException e) {
              late++;
            }
          }
          assertThat(Simulation.now()).isEqualTo(timeout);
          throw new IllegalStateException("nobody came");
        };
    assertThat(joinAlone(alone().withTimeout(timeout))).hasMessageContaining("nobody came");
    assertThat(Simulation.now()).isEqualTo(timeout);
    assertThat(late).isEqualTo(60);
  }

  @Simulated
  void aRankThatIsLateIsAFailureToMeet() {
    provider.create =
        context -> {
          throw new TimeoutException("rank 1 did not connect");
        };
    assertThat(joinAlone(alone()))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank 1 did not connect")
        .hasMessageContaining("rank 1 did not register in the store")
        .hasMessageContaining("Check that all 2 ranks were started")
        .hasMessageContaining("60 s (TUTTI_TIMEOUT)")
        .hasRootCauseInstanceOf(TimeoutException.class);
    assertThat(Simulation.now()).isZero();
  }

  @Simulated
  void aBarrierAfterSetUpThatFailsClosesTheBackend() {
    provider.close = () -> closed++;
    GroupOptions options =
        Simulation.with(alone(), "TORCH_DIST_INIT_BARRIER", "1")
            .withTimeout(Duration.ofMillis(200));
    assertThat(joinAlone(options))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("barrier after set-up");
    assertThat(Simulation.now()).isEqualTo(Duration.ofMillis(200));
    assertThat(closed).isEqualTo(1);
  }

  @Simulated
  void aFailureBeforeTheGroupIsReadyIsNotLost() throws Exception {
    provider.create =
        context -> context.onFailure().failed(new IllegalStateException("died young"), 1);
    try (ProcessGroup group = ProcessGroup.init(alone())) {
      assertThat(Simulation.failure(group)).hasMessageContaining("died young");
      assertThat(Simulation.now()).isZero();
    }
  }

  @Simulated
  void theSetUpOfASubgroupEndsWithItsGroup() throws Exception {
    CountDownLatch inside = new CountDownLatch(2);
    provider.create =
        context -> {
          if (!context.group().equals("0")) {
            inside.countDown();
            context.store().get("never", Duration.ofSeconds(60));
          }
        };
    List<Throwable> failures =
        Simulation.groups(
            2,
            Simulation.store(),
            provider,
            group -> {
              if (group.rank() == 1) {
                Thread _ =
                    Simulation.start(
                        "aborter",
                        () -> {
                          assertThat(catchThrowable(inside::await)).isNull();
                          group.abort("enough");
                        });
              }
              Throwable failure = catchThrowable(() -> group.split(0, group.rank()));
              assertThat(Simulation.now()).isZero();
              return failure;
            });
    assertThat(failures)
        .hasSize(2)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageStartingWith("split refused")
                    .hasMessageContaining("enough"));
  }
}
