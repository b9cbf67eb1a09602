package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.aeron.AeronStoreOptions.Transport;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.StoreContract;

@Sampled
class AeronStoreUdpTest extends StoreContract {
  @Override
  protected Store open() {
    return new AeronStore(
        AeronStoreOptions.of("127.0.0.1", 0).withServer(true).withTransport(Transport.UDP));
  }
}
