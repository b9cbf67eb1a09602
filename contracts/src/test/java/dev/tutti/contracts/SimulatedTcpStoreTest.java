package dev.tutti.contracts;

import dev.tutti.Store;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.spi.Time;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.time.Duration;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Isolated;

/** Runs the contract over a simulated network that is slow and cuts what it carries. */
@ExtendWith(SimulatedContract.class)
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedTcpStoreTest extends StoreContract {
  @Override
  public Time time() {
    return SimulatedHost.current().time();
  }

  @Override
  public boolean acknowledges() {
    return false;
  }

  @Override
  protected Store open() {
    SimulatedHost host = SimulatedHost.current();
    host.delayConnects(Duration.ofMillis(Math.floorMod(host.time().random(), 100)));
    host.slow(host, 4_000_000 + Math.floorMod(host.time().random(), 1_000_000_000L));
    return new TcpStore(
        TcpStoreOptions.of("127.0.0.1", 0)
            .withServer(true)
            .withTime(host.time())
            .withChannels(host.channels()));
  }
}
