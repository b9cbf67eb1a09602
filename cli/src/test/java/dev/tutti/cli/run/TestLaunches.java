package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** Launchers of a single node for tests, and what they pass on and say. */
final class TestLaunches {
  final RecordedOutput output = new RecordedOutput();

  final List<String> messages = new CopyOnWriteArrayList<>();

  Launcher launcher(LaunchPlan plan) {
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    return new Launcher(
        plan, new SingleNode(ranks, () -> {}, () -> {}, HashStore::new), output, messages::add);
  }

  Launcher launcher(LaunchPlan plan, CallListener listener) {
    return launcher(plan, Time.SYSTEM, listener);
  }

  Launcher launcher(LaunchPlan plan, Time time, CallListener listener) {
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    AtomicReference<Launcher> launcher = new AtomicReference<>();
    LaunchRendezvous rendezvous =
        (LaunchRendezvous)
            Proxy.newProxyInstance(
                LaunchRendezvous.class.getClassLoader(),
                new Class<?>[] {LaunchRendezvous.class, Restarts.class},
                (_, method, arguments) -> {
                  Object result = method.invoke(node, arguments);
                  listener.called(launcher.get(), method.getName(), arguments);
                  return result;
                });
    launcher.set(new Launcher(plan, rendezvous, output, messages::add, Binding.NONE, time));
    return launcher.get();
  }

  /** Makes a launcher that performs an action after each proposal, thus when a rank has failed. */
  Launcher launcher(LaunchPlan plan, Consumer<Launcher> afterProposal) {
    return launcher(
        plan,
        (launcher, method, _) -> {
          if (method.equals("propose")) {
            afterProposal.accept(launcher);
          }
        });
  }

  int run(LaunchPlan plan) throws InterruptedException {
    int code = launcher(plan).run();
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
    return code;
  }

  /** Receives each call of a launch's rendezvous once it has returned. */
  interface CallListener {
    void called(Launcher launcher, String method, Object[] arguments);
  }

  /** Returns a command of a shell that waits until a file exists. */
  static String awaitFile(Path file) {
    return "while [ ! -e " + file + " ]; do sleep 0.05; done";
  }

  static LaunchPlan withGrace(LaunchPlan plan, Duration grace) {
    return TestPlans.with(plan, plan.logDirectory(), grace, plan.aotCache());
  }
}
