package dev.tutti.fake.simulation;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The TCP ports of a simulated host. */
final class SimulatedPorts {
  private static final long TIME_WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final InetAddress ALL = new InetSocketAddress(0).getAddress();

  private final NetworkTime network;
  private final InetAddress own;
  private final List<Binding> taken = new ArrayList<>();
  private int first = 32768;
  private int count = 28232;

  SimulatedPorts(NetworkTime network, InetAddress own) {
    this.network = network;
    this.own = own;
  }

  /** Sets which ports those get that bind to port 0. */
  void range(int newFirst, int newCount) {
    first = newFirst;
    count = newCount;
  }

  /**
   * Takes a port.
   *
   * @param wanted the address; null for any port of all addresses
   * @param reuse whether the channel may share its port with those that no longer listen
   * @throws BindException if it is in use, or the address is not one of this host
   */
  Binding bind(@Nullable InetSocketAddress wanted, boolean reuse) throws IOException {
    taken.removeIf(binding -> binding.isFree(network.nowNanos()));
    InetAddress address = wanted == null ? ALL : wanted.getAddress();
    if (!address.isAnyLocalAddress() && !address.isLoopbackAddress() && !address.equals(own)) {
      throw new BindException("Cannot assign requested address");
    }
    int port = wanted == null ? 0 : wanted.getPort();
    Binding binding = port == 0 ? any(address, reuse) : new Binding(address, port, reuse);
    if (binding == null || !isFree(binding)) {
      throw new BindException("Address already in use");
    }
    taken.add(binding);
    return binding;
  }

  private @Nullable Binding any(InetAddress address, boolean reuse) {
    int start = network.choose(count);
    for (int i = 0; i < count; i++) {
      Binding binding = new Binding(address, first + (start + i) % count, reuse);
      if (isFree(binding)) {
        return binding;
      }
    }
    return null;
  }

  private boolean isFree(Binding wanted) {
    return taken.stream()
        .allMatch(other -> other.port() != wanted.port() || other.isBeside(wanted));
  }

  /** Takes the port of a listener for a connection that it accepted. */
  Binding share(Binding listener) {
    Binding shared =
        new Binding(listener.address().getAddress(), listener.port(), listener.reuse());
    taken.add(shared);
    return shared;
  }

  /**
   * Gives a port back.
   *
   * @param waits whether late packets may still come, for which the system keeps it a minute
   */
  void release(Binding binding, boolean waits) {
    binding.freeAt(network.nowNanos() + (waits ? TIME_WAIT_NANOS : 0));
  }
}
