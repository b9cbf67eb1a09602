package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.runtime.rendezvous.SetUpReports;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Lets a rank wait for another one that comes late; the test sets the time. */
@Timeout(300)
class LoneRankReportTest {
  private final HashStore store = new HashStore();
  private final LocalProvider provider = new LocalProvider();

  private GroupOptions options(int rank) {
    return GroupOptions.DEFAULT
        .withProvider(provider)
        .withSettings(Settings.ofEnvironment(Map.of()))
        .withTimeout(Duration.ofMinutes(4))
        .withStore(store)
        .withRank(rank)
        .withSize(2);
  }

  @Test
  void aRankThatWaitsForAnotherNamesIt() throws Exception {
    List<String> lines = new CopyOnWriteArrayList<>();
    CompletableFuture<SetUpReports> begun = new CompletableFuture<>();
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<ProcessGroup> first =
          threads.submit(
              () ->
                  GroupInit.init(
                      options(0),
                      (settings, standing) -> {
                        SetUpReports made =
                            new SetUpReports(
                                Watchdog.of(Time.SYSTEM), 0, standing, Runnable::run, lines::add);
                        begun.complete(made);
                        return made;
                      }));
      store.await(List.of("tutti/0/joined/0"), Duration.ofMinutes(4));
      SetUpReports reports = begun.get();
      reports.checkDeadlines(TimeUnit.SECONDS.toNanos(4));
      assertThat(lines).isEmpty();
      reports.checkDeadlines(TimeUnit.SECONDS.toNanos(5));
      assertThat(lines)
          .containsExactly(
              "for 5 s, rank 0/2 waits for the others at the given store: rank 1 did not register"
                  + " in the store (PyTorch ranks never do)");
      try (ProcessGroup second = ProcessGroup.init(options(1))) {
        assertThat(second.size()).isEqualTo(2);
        first.get().close();
      }
    }
  }
}
