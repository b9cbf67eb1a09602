package dev.tutti.contracts;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.util.Set;

/**
 * Runs the suite on a backend that declares few capabilities: it must reject whatever it does not
 * declare.
 */
@Sampled
class NarrowContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new Narrow();
  }

  @Override
  protected int[] worldSizes() {
    return new int[] {1, 3};
  }

  private static final class Narrow implements BackendProvider {
    private final BackendProvider threaded = new ThreadedProvider();

    @Override
    public int spiVersion() {
      return SPI_VERSION;
    }

    @Override
    public String name() {
      return "narrow";
    }

    @Override
    public Set<String> deviceTypes() {
      return threaded.deviceTypes();
    }

    @Override
    public Capabilities capabilities(String deviceType) {
      return Capabilities.builder()
          .operations(Set.of(OpType.ALL_REDUCE, OpType.ALL_GATHER, OpType.BROADCAST))
          .movable(
              Set.of(DType.FLOAT32, DType.INT32, DType.FLOAT64, DType.UINT8, DType.FLOAT8_E5M2))
          .reducible(Set.of(DType.FLOAT32, DType.INT32, DType.FLOAT64))
          .reduceOps(Set.of(ReduceOp.Kind.SUM, ReduceOp.Kind.BAND))
          .features(Set.of())
          .build();
    }

    @Override
    public Backend create(BackendContext context) throws Exception {
      return threaded.create(context);
    }
  }
}
