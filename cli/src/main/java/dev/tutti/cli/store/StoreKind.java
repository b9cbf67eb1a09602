package dev.tutti.cli.store;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.aeron.AeronStore;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import dev.tutti.tls.TlsSettings;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A kind of store that a process serves to others. */
public enum StoreKind {
  /** Over TCP, on PyTorch's wire. */
  TCP {
    @Override
    public Served serve(@Nullable InetAddress address, int port, Settings settings) {
      TcpStoreServer server =
          new TcpStoreServer(
              address, port, settings.get(JobToken.SETTING), TlsSettings.load(settings));
      return new Served(server.port(), server::forgetAllBut, server::isRunning, server::close);
    }

    @Override
    public Store connect(String host, int port, Duration timeout, Settings settings) {
      return new TcpStore(
          TcpStoreOptions.of(host, port)
              .withWaitForWorkers(false)
              .withTimeout(timeout)
              .withToken(settings.get(JobToken.SETTING))
              .withTls(TlsSettings.load(settings)));
    }
  },
  /** Over Aeron. */
  AERON {
    @Override
    public Served serve(@Nullable InetAddress address, int port, Settings settings) {
      AeronStoreServer server =
          new AeronStoreServer(AeronStoreOptions.of("localhost", port, settings), address);
      return new Served(server.port(), server::forgetAllBut, server::isRunning, server::close);
    }

    @Override
    public Store connect(String host, int port, Duration timeout, Settings settings) {
      return new AeronStore(AeronStoreOptions.of(host, port, settings).withTimeout(timeout));
    }
  };

  /**
   * A store that this process serves.
   *
   * @param port the port
   * @param forgetAllBut deletes keys and queues without a prefix
   * @param running tells whether it serves
   * @param end ends it
   */
  public record Served(
      int port, Consumer<String> forgetAllBut, BooleanSupplier running, Runnable end)
      implements AutoCloseable {
    /**
     * Deletes what the ranks of an attempt left, values and queues: those of the next one would
     * take the addresses, ids and items there for those of each other. A launcher of PyTorch has a
     * new store for each attempt instead.
     *
     * @param kept the prefix of what the launchers keep
     */
    public void deleteLeftovers(String kept) {
      forgetAllBut.accept(kept + "/");
    }

    @Override
    public void close() {
      end.run();
    }
  }

  /**
   * Serves a store.
   *
   * @param address where to listen; null for everywhere
   * @param port the port, 0 for a free one
   * @param settings give the token and the rest
   */
  public abstract Served serve(@Nullable InetAddress address, int port, Settings settings);

  /**
   * Connects to a store.
   *
   * @param host who serves it
   * @param port the port
   * @param timeout deadline of this and of later calls
   * @param settings give the token and the rest
   */
  public abstract Store connect(String host, int port, Duration timeout, Settings settings);

  /** Returns the scheme, as in {@code TUTTI_STORE}. */
  String scheme() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Returns the kind of a scheme, if there is one. */
  static Optional<StoreKind> find(String scheme) {
    return Arrays.stream(values()).filter(kind -> kind.scheme().equals(scheme)).findFirst();
  }

  /** Returns the kind of a scheme. */
  public static StoreKind of(String scheme) {
    return find(scheme)
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "no store '" + scheme + "' that can be served; there are " + schemes()));
  }

  /** Lists the schemes. */
  static String schemes() {
    return Arrays.stream(values()).map(StoreKind::scheme).collect(Collectors.joining(", "));
  }
}
