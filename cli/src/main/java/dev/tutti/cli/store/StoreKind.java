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

/** A kind of store that a process can serve to others. */
public enum StoreKind {
  /** Over TCP, with PyTorch's wire protocol. */
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
   * @param forgetAllBut deletes keys and queues without a given prefix
   * @param running returns whether the store is being served
   * @param end ends the server
   */
  public record Served(
      int port, Consumer<String> forgetAllBut, BooleanSupplier running, Runnable end)
      implements AutoCloseable {
    /**
     * Deletes the values and queues that the ranks of an attempt left. Otherwise the ranks of the
     * next attempt would mistake the addresses, ids and items there for each other's. A PyTorch
     * launcher instead uses a new store for each attempt.
     *
     * @param kept the prefix of the keys that the launchers keep
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
   * @param address the address to listen on, or null for all
   * @param port the port, 0 for a free one
   * @param settings the settings, which give the token and the remaining options
   */
  public abstract Served serve(@Nullable InetAddress address, int port, Settings settings);

  /**
   * Connects to a store.
   *
   * @param host the host that serves the store
   * @param port the port
   * @param timeout the deadline for connecting and for later calls
   * @param settings the settings, which give the token and the remaining options
   */
  public abstract Store connect(String host, int port, Duration timeout, Settings settings);

  /** Returns the scheme, as used in {@code TUTTI_STORE}. */
  String scheme() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Returns the kind with a scheme, if there is one. */
  static Optional<StoreKind> find(String scheme) {
    return Arrays.stream(values()).filter(kind -> kind.scheme().equals(scheme)).findFirst();
  }

  /** Returns the kind with a scheme. */
  public static StoreKind of(String scheme) {
    return find(scheme)
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "cannot serve a store with the scheme '"
                        + scheme
                        + "'; the schemes are "
                        + schemes()));
  }

  /** Lists the schemes. */
  static String schemes() {
    return Arrays.stream(values()).map(StoreKind::scheme).collect(Collectors.joining(", "));
  }
}
