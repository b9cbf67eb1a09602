package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.OperatingSystemMXBean;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Runs the whole suite on 64 ranks. Two cores need less than a minute. Because other programs may
 * share the cores, the limit applies to the CPU time of this process: twice a minute.
 */
@Isolated("measures the processor time of the process")
@Tag("full")
class ThreadedContract64Test extends ProcessGroupContract {
  private final OperatingSystemMXBean system =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private long startNanos;
  private long startCpuNanos;

  @Override
  protected BackendProvider provider() {
    return new ThreadedProvider();
  }

  @Override
  protected int[] worldSizes() {
    return new int[] {64};
  }

  @Override
  protected Duration timeout() {
    return Duration.ofMinutes(3);
  }

  @BeforeAll
  void startClock() {
    startNanos = System.nanoTime();
    startCpuNanos = system.getProcessCpuTime();
  }

  @AfterAll
  void checkTime() {
    double seconds = (System.nanoTime() - startNanos) / 1e9;
    long cpuNanos = system.getProcessCpuTime() - startCpuNanos;
    System.out.printf(
        "contract suite on 64 ranks: %.1f s, processor time %.1f s%n", seconds, cpuNanos / 1e9);
    assertThat(cpuNanos)
        .as("processor time of the suite on 64 ranks")
        .isLessThan(TimeUnit.SECONDS.toNanos(120));
  }
}
