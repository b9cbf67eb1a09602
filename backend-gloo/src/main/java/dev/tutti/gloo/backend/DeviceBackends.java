package dev.tutti.gloo.backend;

import dev.tutti.Device;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The backends that serve the devices of a group's tensors, each opened when first needed. */
public final class DeviceBackends {
  private static final String DEVICE_KEY = "tutti/device";
  private static final byte[] NONE = {'-'};

  private final Map<String, GlooDeviceProvider> providers;
  private final BackendContext context;
  private final boolean isAllTutti;
  private final Map<String, Backend> opened = new ConcurrentHashMap<>();
  private @Nullable Throwable aborted;

  /**
   * Creates an instance for the devices of a rank.
   *
   * @param providers the providers by kind of device
   * @param context the context of the group
   * @param isAllTutti whether all ranks are Tutti ranks
   */
  public DeviceBackends(
      Map<String, GlooDeviceProvider> providers, BackendContext context, boolean isAllTutti) {
    this.providers = providers;
    this.context = context;
    this.isAllTutti = isAllTutti;
  }

  /**
   * Opens the kind of device that all ranks gave and serve, if there is one and all ranks are Tutti
   * ranks.
   */
  void open(Backend host) {
    if (!isAllTutti) {
      return;
    }
    String own = context.device().type();
    GlooDeviceProvider provider = providers.get(own);
    if (provider == null) {
      // The others would wait for it.
      context.bootstrap().publish(DEVICE_KEY, NONE);
      return;
    }
    List<byte[]> all =
        context
            .bootstrap()
            .allGather(
                DEVICE_KEY,
                own.getBytes(StandardCharsets.UTF_8),
                "publish a device type",
                context.deadlineNanos());
    if (all.stream().allMatch(each -> own.equals(new String(each, StandardCharsets.UTF_8)))) {
      opened.put(own, provider.open(new DeviceGroup(context, host, true, true)));
    }
  }

  /**
   * Returns the backend that serves a device; the group's backend does what that backend needs of
   * the host.
   */
  Backend of(Device device, Backend host) {
    Backend known = opened.get(device.type());
    return known == null ? open(device, host) : known;
  }

  private synchronized Backend open(Device device, Backend host) {
    Backend known = opened.get(device.type());
    if (known == null) {
      GlooDeviceProvider provider = providers.get(device.type());
      if (provider == null) {
        throw new UnsupportedOperationException("no module serves " + device + " in Gloo groups");
      }
      known = provider.open(new DeviceGroup(context, host, isAllTutti, false));
      opened.put(device.type(), known);
      if (aborted != null) {
        known.abort(aborted);
      }
    }
    return known;
  }

  synchronized void abort(Throwable cause) {
    aborted = cause;
    opened.values().forEach(each -> each.abort(cause));
  }

  void close() {
    opened.values().forEach(Backend::close);
  }
}
