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
 * Offers the backend {@code central}: every rank sends its part of a collective to rank 0, which
 * answers with the result. Simple, and right; the fewer the ranks, the faster.
 */
public final class CentralProvider implements BackendProvider {
  /** Says by which address the other ranks reach this one. */
  public static final Setting<String> ADDRESS =
      Setting.text(
          "CENTRAL_ADDRESS", "127.0.0.1", "address of this host by which other ranks reach it");

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. */
  public CentralProvider() {}

  @Override
  public String name() {
    return "central";
  }

  /** {@inheritDoc} The compiler copies the number, so it stays when the interface moves on. */
  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  /** Declares all but sparse tensors; the group makes a monitored barrier of its store. */
  @Override
  public Capabilities capabilities() {
    return Capabilities.ofVersion1(Feature.REAL_RESULTS, Feature.UNEVEN_PARTS, Feature.TAGS)
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
