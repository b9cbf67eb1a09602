package dev.tutti.spark;

import dev.tutti.Setting;
import dev.tutti.Store;
import dev.tutti.spi.StoreProvider;
import java.util.List;

/**
 * The provider of the store of a barrier stage for {@code
 * spark-barrier://host:port/stage.attempt/join}, a URL that only {@link SparkWorld} creates; rank 0
 * serves the store.
 */
public final class BarrierStoreProvider implements StoreProvider {
  static final String SCHEME = "spark-barrier";

  /** Creates the provider; called by the service loader. */
  public BarrierStoreProvider() {}

  @Override
  public String scheme() {
    return SCHEME;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public List<Setting<?>> settings() {
    return BarrierStore.settings();
  }

  @Override
  public Store open(Request request) {
    return BarrierStore.find(request.url(), request.rank()).open(request);
  }
}
