package dev.tutti.gradients;

import dev.tutti.GroupOptions;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedWorld;
import java.time.Duration;

/** The worlds that the tests run in. */
public enum Worlds {
  /** Threads with the threaded backend. */
  THREADED("threaded", "16M"),
  /** Threads that communicate through shared memory, as processes of one host do. */
  SHARED_MEMORY("gloo", "16M"),
  /** Threads that communicate over loopback sockets. */
  SOCKETS("gloo", "0");

  private final String backend;
  private final String sharedBytes;

  Worlds(String backend, String sharedBytes) {
    this.backend = backend;
    this.sharedBytes = sharedBytes;
  }

  /** Describes a world of a given size. */
  public ThreadedWorld of(int size) {
    return ThreadedWorld.of(size)
        .withBackend(backend)
        .withTimeout(Duration.ofMinutes(5))
        .withOptions(this::options);
  }

  private GroupOptions options(GroupOptions given) {
    return backend.equals("gloo")
        ? given
            .withSetting("TUTTI_GLOO_SHARED_BYTES", sharedBytes)
            .withSetting("GLOO_SOCKET_IFNAME", "lo")
            .withSetting("TUTTI_X_GLOO_SPIN", "0.02ms")
        : given;
  }

  /** Runs a body on each rank. */
  public void run(int size, RankBody body) {
    of(size).run(body);
  }
}
