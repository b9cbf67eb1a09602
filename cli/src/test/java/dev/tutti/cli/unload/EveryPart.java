package dev.tutti.cli.unload;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.Device;
import dev.tutti.GroupListener;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Registration;
import dev.tutti.Settings;
import dev.tutti.StreamBlock;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.cluster.AeronClusterServer;
import dev.tutti.dlpack.Dlpack;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.StripedAllReduce;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/**
 * Uses each part of Tutti, as far as it needs no device, on the threads of a pool that outlives the
 * class loader, and closes what it opened.
 */
public final class EveryPart {
  private static final String TOKEN = "0123456789abcdef";
  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  private EveryPart() {}

  private interface Body {
    void run(ProcessGroup group) throws Exception;
  }

  /**
   * Uses each part.
   *
   * @param pool at least two threads
   * @param folder a folder for files
   * @param all whether to use also the parts that take long to start
   */
  public static void use(ExecutorService pool, Path folder, boolean all) throws Exception {
    run(pool, inMemory("gloo"), "TUTTI_GLOO_SHARED_BYTES", "1m", EveryPart::train);
    run(
        pool,
        at("file://" + folder.resolve("store")).withBackend("threaded"),
        "TUTTI_FLIGHT_RECORD_DUMP",
        folder.resolve("rank").toString(),
        EveryPart::reduce);
    lookForDevices();
    if (all) {
      run(pool, inMemory("gloo"), "TUTTI_GLOO_SHARED_BYTES", "0", EveryPart::train);
      run(pool, inMemory("fake"), "TUTTI_DEBUG_PORT", "0", EveryPart::reduce);
      for (String scheme : List.of("tcp", "aeron")) {
        String url = scheme + "://127.0.0.1:" + freePort();
        run(pool, at(url).withBackend("gloo"), "TUTTI_DEBUG_PORT", "0", EveryPart::fail);
      }
      useCluster(pool, "127.0.0.1:" + FreePorts.consecutive(5), folder.resolve("member"));
    }
  }

  /** Loads what works on GPUs, which refuses to where there is none. */
  private static void lookForDevices() {
    for (String backend : List.of("cuda", "nccl")) {
      try (ProcessGroup group = ProcessGroup.init(inMemory(backend).withRank(0).withSize(1))) {
        group.barrier();
      } catch (BackendException e) {
        requireNamed(e, backend);
      }
    }
    try {
      StreamBlock.block(Device.cuda(0), Duration.ofSeconds(1)).close();
    } catch (RuntimeException e) {
      requireNamed(e, "cuda");
    }
  }

  private static void requireNamed(RuntimeException refusal, String backend) {
    if (!String.valueOf(refusal.getMessage()).toLowerCase(Locale.ROOT).contains(backend)) {
      throw refusal;
    }
  }

  private static void useCluster(ExecutorService pool, String member, Path folder)
      throws Exception {
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withToken(JobToken.of(TOKEN))
            .withLease(Duration.ofSeconds(3));
    try (AeronClusterServer _ = new AeronClusterServer(member, 0, folder, options)) {
      String url = "aeron-cluster://" + member + "/job";
      run(pool, at(url).withBackend("gloo"), "TUTTI_DEBUG_PORT", "0", EveryPart::fail);
    }
  }

  private static GroupOptions inMemory(String backend) {
    return GroupOptions.DEFAULT.withStore(new HashStore()).withBackend(backend);
  }

  private static GroupOptions at(String url) {
    return GroupOptions.DEFAULT.withInitMethod(url);
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static void run(
      ExecutorService pool, GroupOptions options, String name, String value, Body body)
      throws Exception {
    Settings settings =
        Settings.ofEnvironment(
            Map.of("GLOO_SOCKET_IFNAME", "lo", "TUTTI_TOKEN", TOKEN, name, value));
    List<Future<?>> ranks =
        List.of(
            pool.submit(() -> join(options, 0, settings, body)),
            pool.submit(() -> join(options, 1, settings, body)));
    for (Future<?> rank : ranks) {
      rank.get();
    }
  }

  private static Void join(GroupOptions options, int rank, Settings settings, Body body)
      throws Exception {
    GroupOptions own =
        options.withRank(rank).withSize(2).withTimeout(TIMEOUT).withSettings(settings);
    try (ProcessGroup group = ProcessGroup.init(own)) {
      body.run(group);
    }
    return null;
  }

  private static void reduce(ProcessGroup group) {
    GroupListener listener = new GroupListener() {};
    try (Registration _ = group.addListener(listener)) {
      group.allReduce(Tensor.of(1f, 2f));
    }
    Tensor large = Tensor.allocate(dev.tutti.DType.BFLOAT16, 100_000);
    Work work = group.allReduce(large, ReduceOp.MAX, CallOptions.ASYNC);
    work.toCompletableFuture().join();
    group.barrier();
    String _ = group.diagnostics().flightRecord();
  }

  private static void train(ProcessGroup group) {
    reduce(group);
    group.split(0, 0).orElseThrow().close();
    try (Arena arena = Arena.ofConfined()) {
      Tensor _ = Dlpack.take(Dlpack.give(Tensor.of(1f, 2f)), arena);
    }
    List<Tensor> weights = List.of(Tensor.allocate(dev.tutti.DType.FLOAT32, 50_000));
    try (StripedAllReduce stripes = StripedAllReduce.over(group, 2);
        GradientReducer reducer =
            new GradientReducer(group, weights, ReducerOptions.DEFAULT.withHook(stripes))) {
      step(reducer);
      reducer.await();
    }
    try (ShardedOptimizer optimizer =
        new ShardedOptimizer(group, weights, ReducerOptions.DEFAULT, new AdamW(0.1))) {
      step(optimizer.reducer());
      optimizer.step();
    }
  }

  private static void step(GradientReducer reducer) {
    reducer.gradient(0).fill(1);
    reducer.ready(0);
  }

  private static void fail(ProcessGroup group) {
    reduce(group);
    if (group.rank() == 0) {
      group.abort("to see what a failure leaves behind");
    } else {
      try {
        group.barrier();
      } catch (dev.tutti.CollectiveException e) {
        return;
      }
      throw new AssertionError("the barrier did not fail");
    }
  }
}
