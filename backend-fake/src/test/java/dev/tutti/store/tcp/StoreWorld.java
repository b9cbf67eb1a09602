package dev.tutti.store.tcp;

import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;

/** Creates clients and servers of a store on the host of the calling thread. */
final class StoreWorld {
  static final int PORT = 29500;
  static final Duration LONG = Duration.ofSeconds(60);

  private StoreWorld() {}

  static TcpStoreOptions options(int port) {
    SimulatedHost host = SimulatedHost.current();
    return TcpStoreOptions.of("127.0.0.1", port)
        .withTimeout(LONG)
        .withTime(host.time())
        .withChannels(host.channels());
  }

  static TcpStoreServer server(int port) {
    return server(port, JobToken.NONE);
  }

  static TcpStoreServer server(int port, JobToken token) {
    SimulatedHost host = SimulatedHost.current();
    return new TcpStoreServer(
        InetAddress.getLoopbackAddress(), port, token, null, host.time(), host.channels());
  }

  static ScriptedServer scripted() throws IOException {
    SimulatedHost host = SimulatedHost.current();
    return new ScriptedServer(host.channels(), host.time());
  }

  static RawClient greeted(int port) throws IOException {
    return RawClient.greeted(SimulatedHost.current().channels(), port);
  }

  /** Runs a call on a thread of its own. */
  static <T> Future<T> start(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread _ = SimulatedHost.current().time().start("call", task);
    return task;
  }
}
