package org.example.central;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The provider of the backend {@code central}: every rank sends its part of a collective to rank 0,
 * which answers with the result. The backend is simple and correct; the fewer the ranks, the faster
 * it is.
 */
public final class CentralProvider implements BackendProvider {
  /** The address at which the other ranks reach this one. */
  public static final Setting<String> ADDRESS =
      Setting.text("CENTRAL_ADDRESS", "127.0.0.1", "address at which other ranks reach this host");

  /** Creates the provider; called by {@link java.util.ServiceLoader}. */
  public CentralProvider() {}

  @Override
  public String name() {
    return "central";
  }

  /**
   * {@inheritDoc} The compiler copies the number into this class, so it stays the same when the
   * interface changes.
   */
  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  /** Declares everything but sparse tensors; the group builds a monitored barrier on its store. */
  @Override
  public Capabilities capabilities(String deviceType) {
    return Capabilities.ofVersion1(Feature.UNEVEN_PARTS, Feature.TAGS)
        .without(OpType.ALL_REDUCE_SPARSE, OpType.MONITORED_BARRIER);
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    String address = settings.get(ADDRESS);
    try {
      return NetworkInterface.getByInetAddress(InetAddress.getByName(address)) == null
          ? Optional.of("no interface of this host has the address " + address)
          : Optional.empty();
    } catch (IOException e) {
      return Optional.of(ADDRESS.name() + ": " + e.getMessage());
    }
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(ADDRESS);
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    InetAddress address = InetAddress.getByName(context.settings().get(ADDRESS));
    Mailbox mailbox = new Mailbox(context.rank());
    return new CentralBackend(
        context.rank(), context.size(), mailbox, new Meeting(context, address).connect(mailbox));
  }
}
