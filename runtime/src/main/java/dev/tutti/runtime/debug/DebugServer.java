package dev.tutti.runtime.debug;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.InetSocketAddress;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** The server of a rank that shows where the rank stands, and the page of its job. */
public final class DebugServer {
  private DebugServer() {}

  /**
   * Starts serving.
   *
   * @param address the address to listen on; port 0 picks a free one
   * @param access which clients may read
   * @param tls the context that encrypts connections; null for plain HTTP
   * @param source the information to show
   * @param time by which requests wait for each other
   * @throws IOException if the server cannot listen on the address
   */
  public static PageServer start(
      InetSocketAddress address,
      PageAccess access,
      @Nullable SSLContext tls,
      DebugSource source,
      Time time)
      throws IOException {
    Metrics metrics = new Metrics(source);
    String who = "rank " + source.rank() + "/" + source.size();
    PageServer server =
        PageServer.create(address, access, tls, "tutti-debug-" + source.rank(), who, time);
    server.addJob(source.job());
    server.add("/status", PageServer.JSON, source.status()::get);
    server.add("/flight-record", PageServer.JSON, source.flightRecord()::get);
    server.add("/stacks", PageServer.TEXT, Stacks::text);
    server.add(
        "/settings",
        PageServer.JSON,
        () -> SettingsView.json(source.settings(), source.declared()));
    server.add("/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics::write);
    server.start();
    return server;
  }
}
