package dev.tutti.runtime.group;

import dev.tutti.GroupListener;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.debug.DebugServer;
import dev.tutti.runtime.debug.DebugSource;
import dev.tutti.runtime.debug.GroupMeter;
import dev.tutti.runtime.debug.PageAccess;
import dev.tutti.runtime.debug.PageServer;
import dev.tutti.runtime.operation.PendingOperations.Wait;
import dev.tutti.runtime.record.JsonWriter;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.LiveJob;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * Provides what the debug server of a rank shows, and starts that server.
 *
 * @param own the status of the rank
 * @param all the view of all ranks
 * @param settings the settings of the rank
 * @param providers the providers of its backends
 */
record JobDebug(
    JobStatus own, LiveJob all, Settings settings, Collection<BackendProvider> providers)
    implements DebugSource {
  private static final System.Logger LOG = System.getLogger(JobDebug.class.getName());

  /**
   * Starts a server if the settings enable one; null if they do not, or if the server cannot be
   * started, which is logged.
   *
   * @param time by which requests wait for each other
   */
  @Nullable AutoCloseable start(Time time) {
    int port = settings.get(RuntimeSettings.DEBUG_PORT);
    if (port < 0) {
      return null;
    }
    String who = "rank " + rank() + "/" + size();
    JobToken token = settings.get(JobToken.SETTING);
    String host = settings.get(RuntimeSettings.DEBUG_HOST);
    try {
      SSLContext tls = TlsSettings.load(settings);
      int own = port == 0 ? 0 : port + RuntimeSettings.localRank(settings);
      InetSocketAddress address = new InetSocketAddress(host, own);
      boolean isLocal = !address.isUnresolved() && address.getAddress().isLoopbackAddress();
      if (!token.isSet() && !isLocal) {
        LOG.log(Level.WARNING, who + ": no debug server because TUTTI_TOKEN is not set");
        return null;
      }
      if (tls == null && !isLocal) {
        LOG.log(
            Level.WARNING,
            who
                + ": no debug server at "
                + host
                + ": others could read its secret on the network; set TUTTI_TLS, or leave"
                + " TUTTI_DEBUG_HOST at a loopback address");
        return null;
      }
      PageAccess access = token.isSet() ? PageAccess.ofJob(token) : PageAccess.once();
      PageServer server = DebugServer.start(address, access, tls, this, time);
      LOG.log(
          Level.INFO,
          "{0}: debug server at {3}://{1}{4}",
          who,
          new HostPort(host, server.port()),
          Integer.toString(server.port()),
          tls == null ? "http" : "https",
          token.isSet() ? "" : "/" + access.query() + ", a URL that can be opened once");
      return () -> {
        try (all) {
          server.close();
        }
      };
    } catch (IOException | IllegalArgumentException | LinkageError e) {
      LOG.log(Level.WARNING, who + ": no debug server at " + host + ":" + port + ": " + e);
      return null;
    }
  }

  @Override
  public int rank() {
    return own.rank();
  }

  @Override
  public int size() {
    return own.size();
  }

  @Override
  public String status() {
    return own.toJson();
  }

  @Override
  public JobView job() {
    return all.get();
  }

  @Override
  public String flightRecord() {
    return JsonWriter.write(own.records().toMap());
  }

  @Override
  public List<Setting<?>> declared() {
    List<Setting<?>> all = new ArrayList<>(RuntimeSettings.all());
    all.add(JobToken.SETTING);
    providers.forEach(provider -> all.addAll(provider.settings()));
    return all;
  }

  @Override
  public List<GroupMeter> groups() {
    return own.records().openGroups().stream().<GroupMeter>map(Meter::new).toList();
  }

  /** The metrics of one group. */
  private record Meter(Group of) implements GroupMeter {
    @Override
    public String group() {
      return of.identity.name();
    }

    @Override
    public void addListener(GroupListener listener) {
      var _ = of.listeners.add(listener);
    }

    @Override
    public long lastCollective() {
      return of.runner.sequence();
    }

    @Override
    public int pending() {
      return of.pending.waits().size();
    }

    @Override
    public double waitedSeconds() {
      List<Wait> waits = of.pending.waits();
      return waits.isEmpty() ? 0 : waits.getFirst().nanos() / 1e9;
    }

    @Override
    public boolean hasFailed() {
      return of.failures.isFailing();
    }

    @Override
    public Map<String, Long> paths() {
      return of.paths.read();
    }
  }
}
