package dev.tutti.lightgbm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.testing.World;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** LightGBM keeps a network per thread, so tests may run ranks as threads. */
@Timeout(1200)
class LightGbmNetworkTest {
  private static final int ROWS = 3000;
  private static final int NEVER = -1;

  /** The ranks of a training take turns thousands of times, each time after a wait for a core. */
  private static final Duration LIMIT = Duration.ofMinutes(9);

  @World(
      sizes = {1, 2, 3, 4},
      timeoutSeconds = 240)
  void ranksOfOneModel(ProcessGroup group) {
    try (LightGbmNetwork network = LightGbmNetwork.open(group);
        Training training = train(network, group)) {
      for (int round = 0; round < 3; round++) {
        training.round();
      }
      String model = training.model();
      assertThat(model).contains("Tree=2").doesNotContain("Tree=3");
      List<String> all = group.allGatherObject(model, Codec.STRING);
      assertThat(all).containsOnly(model);
      assertThat(network.failure()).isEmpty();
    }
  }

  private static Training train(LightGbmNetwork network, ProcessGroup group) {
    return new Training(network::call, "regression", ROWS, group.rank(), group.size());
  }

  /** If LightGBM learns to divide features in its C API, the parameter need not be refused. */
  @World(size = 2, backends = "gloo", timeoutSeconds = 240)
  void ranksCannotDivideTheFeatures(ProcessGroup group) {
    String sharing = "tree_learner=feature";
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      assertThatThrownBy(() -> network.parameters(sharing))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(
              () ->
                  new Training(
                      network::call, "regression", ROWS, 0, 1, sharing + " num_machines=2"))
          .hasMessageContaining("Do not support feature parallel in c api");
    }
  }

  /** If LightGBM learns to grow linear trees together, the parameter need not be refused. */
  @World(size = 2, backends = "gloo", timeoutSeconds = 240)
  void ranksGrowLinearTreesAlone(ProcessGroup group) {
    String sharing = "tree_learner=data pre_partition=true linear_tree=true";
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      assertThatThrownBy(() -> network.parameters(sharing))
          .isInstanceOf(IllegalArgumentException.class);
      try (Training training =
          new Training(
              network::call, "regression", ROWS, group.rank(), 2, sharing + " num_machines=2")) {
        assertThat(new HashSet<>(group.allGatherObject(trees(training), Codec.STRING))).hasSize(2);
      }
    }
  }

  @World(size = 2, backends = "gloo", timeoutSeconds = 240)
  void parametersThatLetRanksTrainAloneAreRefused(ProcessGroup group) {
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      assertThat(network.parameters("tree=voting_parallel num_machine=2 linear_trees=false"))
          .isEqualTo("tree=voting_parallel num_machine=2 linear_trees=false");
      Map.of(
              "objective=binary",
              "tree_learner=serial: each rank would train alone; use data or voting",
              "tree_learner=data num_machines=3",
              "num_machines=3: the group has 2 ranks",
              "tree_type=feature_parallel",
              "tree_learner=feature: LightGBM's C API does not support it; use data or voting",
              "tree_learner=DATA linear_trees=true",
              "linear_tree=true: LightGBM grows linear trees on each rank alone")
          .forEach(
              (parameters, reason) ->
                  assertThatThrownBy(() -> network.parameters(parameters))
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessage("rank " + group.rank() + " cannot train with " + reason));
    }
  }

  @World(size = 1, timeoutSeconds = 240)
  void oneRankMayUseAnyParameters(ProcessGroup group) {
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      assertThat(network.parameters("linear_tree=true"))
          .isEqualTo("linear_tree=true num_machines=1");
    }
  }

  /** Returns the trees of a model after three rounds, without the parameters. */
  private static String trees(Training training) {
    for (int round = 0; round < 3; round++) {
      training.round();
    }
    String model = training.model();
    assertThat(model).contains("Tree=2");
    return model.substring(model.indexOf("Tree=0"), model.indexOf("end of trees"));
  }

  /**
   * The network may fail at any call: in a data set, or at the start or in the middle of a
   * training.
   */
  @Test
  void everyCallMayFail() throws Exception {
    int calls = 0;
    int step = 1;
    for (int at = 0; ; at += step) {
      boolean failed = fails(NEVER, at);
      calls++;
      if (!failed) {
        break;
      }
      step = at < 40 ? 1 : 17;
    }
    assertThat(calls).isGreaterThan(45);
  }

  @Test
  void theFirstCallThrowsWhatFailedWhileTheNetworkWasOpened() throws Exception {
    for (int at : new int[] {0, 1, 2, 100}) {
      assertThat(fails(at, NEVER)).as("fails after %d calls", at).isTrue();
    }
  }

  /**
   * Trains on two ranks, the last of which fails after some calls while it opens its network, or
   * after some calls from then on; returns whether it failed.
   */
  private static boolean fails(int opening, int open) throws Exception {
    AtomicInteger left = new AtomicInteger(opening);
    List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
    ThreadedWorld.of(2)
        .withTimeout(LIMIT)
        .run(
            group -> {
              ProcessGroup used = group.rank() == 1 ? failing(group, left) : group;
              try (LightGbmNetwork network = LightGbmNetwork.open(used)) {
                if (group.rank() == 1 && open != NEVER) {
                  left.set(open);
                }
                try (Training training = train(network, used)) {
                  for (int round = 0; round < 3; round++) {
                    training.round();
                  }
                } catch (LightGbmException e) {
                  thrown.add(e);
                  assertThat(network.failure()).contains(e.getCause());
                  assertThatThrownBy(() -> network.call(() -> 0)).hasCause(e.getCause());
                  group.abort("training failed");
                }
              }
            });
    assertThat(thrown).hasSizeBetween(0, 2);
    if (!thrown.isEmpty()) {
      assertThat(thrown).anyMatch(e -> e.getCause() instanceof ArithmeticException);
      assertThat(thrown).allMatch(e -> e.getMessage().startsWith("the network of LightGBM failed"));
    }
    return !thrown.isEmpty();
  }

  private static ProcessGroup failing(ProcessGroup group, AtomicInteger left) {
    return (ProcessGroup)
        Proxy.newProxyInstance(
            LightGbmNetworkTest.class.getClassLoader(),
            new Class<?>[] {ProcessGroup.class},
            (proxy, method, arguments) -> {
              boolean isCollective =
                  method.getName().equals("allToAllSingle")
                      || method.getName().equals("allGatherInto");
              if (isCollective && left.getAndDecrement() == 0) {
                throw new ArithmeticException("on purpose");
              }
              try {
                return method.invoke(group, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @World(size = 2, timeoutSeconds = 240)
  void belongsToItsThread(ProcessGroup group) throws Exception {
    try (LightGbmNetwork network = LightGbmNetwork.open(group)) {
      assertThatThrownBy(() -> LightGbmNetwork.open(group))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("already has an open");
      List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
      Thread other =
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (Runnable use :
                        List.<Runnable>of(() -> network.call(() -> 0), network::close)) {
                      try {
                        use.run();
                      } catch (IllegalStateException e) {
                        thrown.add(e);
                      }
                    }
                  });
      other.join();
      assertThat(thrown)
          .hasSize(2)
          .allMatch(e -> e.getMessage().startsWith("this LightGbmNetwork belongs to thread"));
    }
  }

  @World(size = 1, timeoutSeconds = 240)
  void saysWhatLightGbmSays(ProcessGroup group) {
    LightGbmNetwork network = LightGbmNetwork.open(group);
    try {
      assertThatThrownBy(
              () ->
                  network.call(
                      () ->
                          lightgbmlib.LGBM_BoosterCreateFromModelfile(
                              "/no/such/model", lightgbmlib.new_intp(), lightgbmlib.new_voidpp())))
          .isInstanceOf(LightGbmException.class)
          .hasMessageStartingWith("LightGBM: ")
          .hasMessageContaining("/no/such/model");
    } finally {
      network.close();
    }
    network.close();
    assertThatThrownBy(() -> network.call(() -> 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(() -> NativePointer.of(MemorySegment.ofArray(new byte[1])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("LightGBM reads native memory");
  }

  @Test
  void aThousandRoundsLeakNothing() throws Exception {
    train(1000);
    int threads = Thread.activeCount();
    long descriptors = descriptors();
    // A leak grows in every round; the JVM, above all its compiler, grows only in the first rounds.
    List<Long> grown = new ArrayList<>();
    do {
      long before = residentKib();
      train(1000);
      grown.add(residentKib() - before);
    } while (grown.getLast() > 1024 && grown.size() < 10);
    assertThat(grown).as("KiB more in each turn").anyMatch(more -> more <= 1024);
    // Threads of a group end shortly after the group was closed.
    long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (Thread.activeCount() > threads && System.nanoTime() < limit) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(Thread.activeCount()).isLessThanOrEqualTo(threads);
    assertThat(descriptors()).isLessThanOrEqualTo(descriptors);
  }

  private static void train(int rounds) throws Exception {
    ThreadedWorld.of(2)
        .withTimeout(LIMIT)
        .run(
            group -> {
              try (LightGbmNetwork network = LightGbmNetwork.open(group);
                  Training training = train(network, group)) {
                for (int round = 0; round < rounds; round++) {
                  training.round();
                }
              }
            });
    System.gc();
  }

  private static long residentKib() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
      return Long.parseLong(
          lines
              .filter(line -> line.startsWith("RssAnon"))
              .findFirst()
              .orElseThrow()
              .replaceAll("\\D", ""));
    }
  }

  private static long descriptors() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.count();
    }
  }
}
