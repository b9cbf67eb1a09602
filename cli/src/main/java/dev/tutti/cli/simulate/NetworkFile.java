package dev.tutti.cli.simulate;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes a network as properties. Times are in microseconds, and rates in 10^9 bytes per
 * second; a rate of {@code Infinity} costs nothing.
 */
public final class NetworkFile {
  private static final double MICRO = 1e-6;
  private static final double GIGA = 1e9;
  private static final List<String> LINK =
      List.of("round.us", "each.us", "reduce.GBps", "spread.GBps", "gather.GBps", "shares");
  private static final List<String> OTHERS =
      List.of(
          "host.ranks",
          "host.cores",
          "rack.hosts",
          "nic.latency.us",
          "nic.GBps",
          "spine.latency.us",
          "spine.oversubscription");
  private static final List<String> DEVICE =
      List.of(
          "device.start.us", "device.trip.us", "device.GBps", "device.gap.us", "device.call.us");
  private static final List<String> STORE =
      List.of(
          "store.call.us",
          "store.growth",
          "store.key.us",
          "store.wake.us",
          "store.waiter.us",
          "store.join.us",
          "store.disconnect.us");

  /** Among what is allowed, the longest time of any number of bytes is finite. */
  private static final double MOST = 1e12;

  private static final double LEAST_RATE = 1e-9;

  private final Properties properties;
  private final Path file;

  /** Properties that refuse a key that occurs again. */
  private static final class KeysOnce extends Properties {
    @Override
    public synchronized @Nullable Object put(Object key, Object value) {
      if (containsKey(key)) {
        throw new IllegalArgumentException(key + " occurs twice");
      }
      return super.put(key, value);
    }
  }

  private NetworkFile(Path file, Properties properties) {
    this.file = file;
    this.properties = properties;
  }

  /**
   * Reads a file.
   *
   * @throws IllegalArgumentException naming the key that is missing, unknown or no number in range
   * @throws IOException if the file cannot be read
   */
  public static Network read(Path file) throws IOException {
    if (Files.isDirectory(file)) {
      throw new IllegalArgumentException(file + " is a folder, not a network");
    }
    Properties properties = new KeysOnce();
    try (Reader reader = Files.newBufferedReader(file)) {
      properties.load(reader);
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException(file + " is not text in UTF-8", e);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
    }
    NetworkFile text = new NetworkFile(file, properties);
    text.requireKnownKeys();
    return new Network(
        text.count("host.ranks"),
        text.count("host.cores"),
        text.count("rack.hosts"),
        text.number("spine.oversubscription"),
        text.link("memory"),
        text.link("socket"),
        text.number("nic.latency.us") * MICRO,
        text.inverse("nic.GBps"),
        text.number("spine.latency.us") * MICRO,
        text.device(),
        text.store());
  }

  /** Returns the text of a file from which {@link #read} reads the same network. */
  public static String text(Network network) {
    StringBuilder text = new StringBuilder();
    line(text, "host.ranks", network.hostRanks());
    line(text, "host.cores", network.hostCores());
    line(text, "rack.hosts", network.rackHosts());
    link(text, "memory", network.memory());
    link(text, "socket", network.socket());
    line(text, "nic.latency.us", network.nicLatency() / MICRO);
    line(text, "nic.GBps", 1 / network.nic() / GIGA);
    line(text, "spine.latency.us", network.spineLatency() / MICRO);
    line(text, "spine.oversubscription", network.oversubscription());
    DeviceCost device = network.device();
    lines(
        text,
        DEVICE,
        device.start() / MICRO,
        device.trip() / MICRO,
        1 / device.send() / GIGA,
        device.gap() / MICRO,
        device.call() / MICRO);
    StoreCost store = network.store();
    lines(
        text,
        STORE,
        store.call() / MICRO,
        store.growth(),
        store.key() / MICRO,
        store.wake() / MICRO,
        store.waiter() / MICRO,
        store.join() / MICRO,
        store.disconnect() / MICRO);
    return text.toString();
  }

  private static void link(StringBuilder text, String name, LinkCost cost) {
    line(text, name + "." + LINK.get(0), cost.round() / MICRO);
    line(text, name + "." + LINK.get(1), cost.each() / MICRO);
    line(text, name + "." + LINK.get(2), rates(cost.reduce()));
    line(text, name + "." + LINK.get(3), rates(cost.spread()));
    line(text, name + "." + LINK.get(4), rates(cost.gather()));
    line(
        text,
        name + "." + LINK.get(5),
        cost.shares().longer().stream().map(String::valueOf).collect(Collectors.joining(",")));
  }

  private static void lines(StringBuilder text, List<String> keys, double... values) {
    for (int i = 0; i < values.length; i++) {
      line(text, keys.get(i), values[i]);
    }
  }

  private static String rates(Curve curve) {
    return curve.seconds().stream()
        .map(seconds -> String.valueOf(1 / seconds / GIGA))
        .collect(Collectors.joining(","));
  }

  private static void line(StringBuilder text, String key, Object value) {
    text.append(key).append('=').append(value).append('\n');
  }

  private void requireKnownKeys() {
    Set<String> unknown = new TreeSet<>(properties.stringPropertyNames());
    OTHERS.forEach(unknown::remove);
    DEVICE.forEach(unknown::remove);
    STORE.forEach(unknown::remove);
    LINK.forEach(
        each -> {
          unknown.remove("memory." + each);
          unknown.remove("socket." + each);
        });
    if (!unknown.isEmpty()) {
      throw new IllegalArgumentException(file + " has unknown keys: " + String.join(", ", unknown));
    }
  }

  private LinkCost link(String name) {
    return new LinkCost(
        number(name + "." + LINK.get(0)) * MICRO,
        number(name + "." + LINK.get(1)) * MICRO,
        curve(name + "." + LINK.get(2)),
        curve(name + "." + LINK.get(3)),
        curve(name + "." + LINK.get(4)),
        shares(name + "." + LINK.get(5)));
  }

  private Shares shares(String key) {
    List<Double> longer =
        Arrays.stream(text(key).split(",", -1)).map(each -> number(key, each)).toList();
    return new Shares(longer);
  }

  /** Parses one rate for all sizes, or one for each size. */
  private Curve curve(String key) {
    String[] rates = text(key).split(",", -1);
    if (rates.length == 1) {
      return Curve.flat(inverse(key, rates[0]));
    }
    try {
      return new Curve(Arrays.stream(rates).map(rate -> inverse(key, rate)).toList());
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(file + ": " + key + ": " + e.getMessage(), e);
    }
  }

  private DeviceCost device() {
    return new DeviceCost(
        number(DEVICE.get(0)) * MICRO,
        number(DEVICE.get(1)) * MICRO,
        inverse(DEVICE.get(2)),
        number(DEVICE.get(3)) * MICRO,
        number(DEVICE.get(4)) * MICRO);
  }

  private StoreCost store() {
    return new StoreCost(
        number(STORE.get(0)) * MICRO,
        number(STORE.get(1)),
        number(STORE.get(2)) * MICRO,
        number(STORE.get(3)) * MICRO,
        number(STORE.get(4)) * MICRO,
        number(STORE.get(5)) * MICRO,
        number(STORE.get(6)) * MICRO);
  }

  private double inverse(String key) {
    return inverse(key, text(key));
  }

  private double inverse(String key, String text) {
    double rate = parse(key, text);
    if (!(rate >= LEAST_RATE)) {
      throw new IllegalArgumentException(
          file + ": " + key + " must be at least " + LEAST_RATE + ", not " + text);
    }
    return 1 / (rate * GIGA);
  }

  private int count(String key) {
    double value = parse(key, text(key));
    if (!(value >= 1) || value > Integer.MAX_VALUE || value != Math.rint(value)) {
      throw new IllegalArgumentException(
          file + ": " + key + " must be a whole number from 1, not " + text(key));
    }
    return (int) value;
  }

  private double number(String key) {
    return number(key, text(key));
  }

  private double number(String key, String text) {
    double value = parse(key, text);
    if (!(value >= 0 && value <= MOST)) {
      throw new IllegalArgumentException(
          file + ": " + key + " must be from 0 to " + MOST + ", not " + text);
    }
    return value;
  }

  private double parse(String key, String text) {
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          file + ": " + key + " must be a number, not '" + text + "'", e);
    }
  }

  private String text(String key) {
    String value = properties.getProperty(key);
    if (value == null) {
      throw new IllegalArgumentException(file + " has no " + key);
    }
    return value.strip();
  }
}
