package dev.tutti.runtime.group;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.json.Json;
import dev.tutti.runtime.debug.PageAccess;
import dev.tutti.runtime.debug.PageServer;
import dev.tutti.runtime.debug.Stacks;
import dev.tutti.runtime.settings.RuntimeSettings;
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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** Starts the debug server of a rank. */
final class JobDebug {
  private static final System.Logger LOG = System.getLogger(JobDebug.class.getName());

  private JobDebug() {}

  /**
   * Starts a server if the settings enable one; null if they do not, or if the server cannot be
   * started, which is logged.
   */
  static @Nullable AutoCloseable start(
      JobStatus own,
      LiveJob all,
      Settings settings,
      Collection<BackendProvider> providers,
      Time time) {
    int port = settings.get(RuntimeSettings.DEBUG_PORT);
    if (port < 0) {
      return null;
    }
    String who = "rank " + own.rank() + "/" + own.size();
    JobToken token = settings.get(JobToken.SETTING);
    String host = settings.get(RuntimeSettings.DEBUG_HOST);
    try {
      SSLContext tls = TlsSettings.load(settings);
      int ownPort = port == 0 ? 0 : port + RuntimeSettings.localRank(settings);
      InetSocketAddress address = new InetSocketAddress(host, ownPort);
      boolean isLocal = !address.isUnresolved() && address.getAddress().isLoopbackAddress();
      if (!isLocal && (!token.isSet() || tls == null)) {
        String why =
            !token.isSet()
                ? " because TUTTI_TOKEN is not set"
                : " at %s: others could read its secret on the network; set TUTTI_TLS, or leave"
                        .formatted(host)
                    + " TUTTI_DEBUG_HOST at a loopback address";
        LOG.log(Level.WARNING, who + ": no debug server" + why);
        return null;
      }
      PageAccess access = token.isSet() ? PageAccess.ofJob(token) : PageAccess.once();
      PageServer server =
          PageServer.create(address, access, tls, "tutti-debug-" + own.rank(), who, time);
      server.addJob(all);
      add(server, own, settings, providers);
      server.start();
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

  /** Adds the pages of a rank. */
  private static void add(
      PageServer server, JobStatus own, Settings settings, Collection<BackendProvider> providers) {
    List<Setting<?>> declared = new ArrayList<>(RuntimeSettings.all());
    declared.add(JobToken.SETTING);
    providers.forEach(provider -> declared.addAll(provider.settings()));
    Metrics metrics = new Metrics(own.rank(), own.records());
    server.add("/status", PageServer.JSON, own::toJson);
    server.add("/flight-record", PageServer.JSON, () -> Json.write(own.records().toMap()));
    server.add("/stacks", PageServer.TEXT, Stacks::text);
    server.add("/settings", PageServer.JSON, () -> settings(settings, declared));
    server.add("/metrics", Metrics.TYPE, metrics::write);
  }

  /** Returns the settings of the rank as JSON, with secrets masked. */
  private static String settings(Settings settings, List<Setting<?>> declared) {
    Map<String, Object> all = new TreeMap<>();
    for (Setting<?> setting : declared) {
      Map<String, Object> one = new LinkedHashMap<>();
      String text = settings.text(setting.name()).orElse(setting.defaultText());
      one.put("value", setting.shown(text));
      one.put("source", settings.source(setting).label());
      one.put("description", setting.description());
      all.put(setting.name(), one);
    }
    return Json.write(all);
  }
}
