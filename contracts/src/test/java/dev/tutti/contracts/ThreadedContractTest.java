package dev.tutti.contracts;

import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.parallel.ExecutionMode;

@org.junit.jupiter.api.parallel.Execution(ExecutionMode.CONCURRENT)
// @start region="suite"
@Order(1)
class ThreadedContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new ThreadedProvider();
  }
}
// @end
