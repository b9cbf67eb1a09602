package dev.tutti.aeron.cluster;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.wire.Unencrypted;
import dev.tutti.spi.StoreProvider;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.tls.TlsSettings;
import java.util.List;
import java.util.Optional;

/**
 * The provider of an {@link AeronClusterStore} for {@code
 * aeron-cluster://a:29500,b:29500,c:29500/job}. No rank serves this store, and it outlives jobs;
 * the path, if present, keeps the keys of different jobs apart.
 */
public final class AeronClusterProvider implements StoreProvider {
  /** Creates the provider; called by the service loader. */
  public AeronClusterProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String scheme() {
    return "aeron-cluster";
  }

  @Override
  public boolean isServedByRank() {
    return false;
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return Unencrypted.reason(settings).or(JvmFlags::missing);
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(
        AeronStoreOptions.DIRECTORY,
        AeronStoreOptions.DRIVER,
        AeronStoreOptions.LEASE,
        AeronStoreOptions.SPIN,
        JobToken.SETTING,
        TlsSettings.ENABLED);
  }

  @Override
  public Store open(Request request) {
    String members = request.url().getRawAuthority();
    if (members == null) {
      throw new RendezvousException("no members in " + request.url());
    }
    AeronClusterStore store =
        new AeronClusterStore(
            members,
            AeronStoreOptions.of("localhost", 0, request.settings())
                .withTimeout(request.timeout()));
    String path = Optional.ofNullable(request.url().getPath()).orElse("").replaceFirst("^/+", "");
    if (path.isEmpty()) {
      return store;
    }
    try (store) {
      return new PrefixStore(path, store).duplicate();
    }
  }
}
