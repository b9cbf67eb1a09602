package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.store.HashStore;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Creates groups in which only some ranks have a provider for another kind of device. */
@Timeout(300)
class GlooDevicesTest {
  private final Queue<Boolean> opened = new ConcurrentLinkedQueue<>();

  /** A provider of devices that do not exist. */
  private final class Toys implements GlooDeviceProvider {
    @Override
    public String deviceType() {
      return "toy";
    }

    @Override
    public Capabilities capabilities(Capabilities host) {
      return host;
    }

    @Override
    public Backend open(GlooGroup group) {
      opened.add(group.isOpenedByAll());
      return new Backend() {
        @Override
        public void abort(Throwable cause) {}

        @Override
        public void close() {}
      };
    }
  }

  private void assertSums(IntPredicate hasToy, IntPredicate hasModule) throws Exception {
    HashStore store = new HashStore();
    List<Float> sums =
        GlooWorld.inParallel(
            3,
            rank -> {
              List<GlooDeviceProvider> modules =
                  hasModule.test(rank) ? List.of(new Toys()) : List.of();
              GroupOptions options =
                  GlooWorld.options(store, rank, 3, GlooWorld.settings())
                      .withProvider(new GlooProvider(modules));
              if (hasToy.test(rank)) {
                options = options.withDevice(new Device("toy", 0));
              }
              try (ProcessGroup group = ProcessGroup.init(options)) {
                Tensor tensor = Tensor.of(rank + 1f);
                group.allReduce(tensor);
                return tensor.toFloatArray()[0];
              }
            });
    assertThat(sums).containsExactly(6f, 6f, 6f);
  }

  @Test
  void ranksWithoutAnyModuleJoinOnesWithOne() throws Exception {
    assertSums(rank -> rank == 0, rank -> rank == 0);
    assertThat(opened).isEmpty();
  }

  @Test
  void ranksWithoutSuchADeviceJoinOnesWithOne() throws Exception {
    assertSums(rank -> rank > 0, rank -> true);
    assertThat(opened).isEmpty();
  }

  @Test
  void devicesThatAllRanksGaveAreOpenedAtOnce() throws Exception {
    assertSums(rank -> true, rank -> true);
    assertThat(opened).containsExactly(true, true, true);
  }
}
