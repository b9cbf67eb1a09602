package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Tests which backend of a group runs the operations that have no tensor. */
class ChecksTest {
  private static final Capabilities PLAIN = Capabilities.ofVersion1();

  private static BoundBackend bound(String device, Capabilities capabilities) throws Exception {
    return bound(device, capabilities, false);
  }

  private static BoundBackend bound(String device, Capabilities capabilities, boolean takesBarriers)
      throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.takesBarriers = takesBarriers;
    Backend backend =
        provider.create(
            BackendContext.builder("0", 0, 1, new HashStore(), Duration.ofSeconds(1)).build());
    return new BoundBackend("scripted", device, backend, capabilities, Map.of(), true);
  }

  private static Checks checks(BoundBackend... backends) {
    GroupIdentity identity =
        new GroupIdentity("0", 0, List.of(0), Settings.ofEnvironment(Map.of()), Time.SYSTEM);
    Map<String, BoundBackend> all = new TreeMap<>();
    for (BoundBackend each : backends) {
      all.put(each.deviceType(), each);
    }
    return new Checks(identity, all, text -> {});
  }

  @Test
  void barriersRunOnTheHost() throws Exception {
    BoundBackend host = bound("cpu", PLAIN);
    Checks checks = checks(bound("accelerator", PLAIN), host, bound("cuda", PLAIN));
    assertThat(checks.barrierBackend()).isSameAs(host);
    assertThat(checks.hostBackend()).isSameAs(host);
  }

  @Test
  void barriersRunOnADeviceWhereItsBackendAsksForThem() throws Exception {
    BoundBackend host = bound("cpu", PLAIN);
    BoundBackend device = bound("cuda", PLAIN, true);
    Checks checks = checks(host, device);
    assertThat(checks.barrierBackend()).isSameAs(device);
    assertThat(checks.hostBackend()).isSameAs(host);
  }

  @Test
  void withoutAHostBarriersRunOnTheFirstDevice() throws Exception {
    BoundBackend first = bound("accelerator", PLAIN);
    assertThat(checks(bound("cuda", PLAIN), first).barrierBackend()).isSameAs(first);
  }

  @Test
  void aBarrierThatTheBackendLacksIsRefused() throws Exception {
    Checks checks = checks(bound("cpu", PLAIN.without(OpType.BARRIER)));
    assertThatThrownBy(checks::barrierBackend)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("'scripted' does not support barrier");
  }
}
