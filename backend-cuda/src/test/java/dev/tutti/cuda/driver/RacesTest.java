package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cuda.CudaException;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/** Tests that the fake driver finds races, and captures work of several streams into one graph. */
@Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
class RacesTest {
  private static final long BYTES = 64;

  private final FakeCudaDriver fake = new FakeCudaDriver(1);
  private final CudaDriver driver = fake.driver();
  private final StreamCalls streams = driver.streams();
  private final long a;
  private final long b;
  private final long memory;
  private final long other;
  private final long event;

  RacesTest() {
    driver.contexts().setCurrent(driver.contexts().retainPrimary(0));
    a = streams.create(0);
    b = streams.create(0);
    memory = driver.memory().allocate(BYTES);
    other = driver.memory().allocate(BYTES);
    event = driver.events().create(EventCalls.Purpose.ORDER);
    fake.races().find();
  }

  @AfterEach
  void close() {
    fake.close();
  }

  private void order(long later, long earlier) {
    driver.events().record(event, earlier);
    streams.waitFor(later, event);
  }

  private void write(long stream) {
    streams.fill(memory, (byte) 1, BYTES, stream);
  }

  private void read(long stream) {
    streams.copy(other, memory, BYTES, stream);
  }

  private void end() {
    streams.synchronize(a);
    streams.synchronize(b);
  }

  @Test
  void accessesOfOneStreamAreNoRace() {
    write(a);
    read(a);
    write(a);
    end();
    assertThat(fake.races().found()).isEmpty();
  }

  @Test
  void aWriteAndAReadOfTwoStreamsAreARaceUnlessAnEventOrdersThem() {
    write(a);
    order(b, a);
    read(b);
    order(a, b);
    write(a);
    end();
    assertThat(fake.races().found()).isEmpty();
    read(b);
    streams.synchronize(b);
    write(a);
    streams.synchronize(a);
    assertThat(fake.races().found()).as("the host waited").isEmpty();
    write(a);
    read(b);
    end();
    assertThat(fake.races().found())
        .singleElement()
        .asString()
        .contains("cuMemsetD8Async writes 0x" + Long.toHexString(memory), "cuMemcpyAsync reads");
  }

  @Test
  void aRaceIsFoundThoughTheWorkRunsInTheRightOrder() throws Exception {
    fake.dropWaits(() -> true);
    write(a);
    order(b, a);
    CountDownLatch written = new CountDownLatch(1);
    fake.kernel("wait", 0, _ -> written.await());
    long module = driver.kernels().load(new byte[1]);
    driver.kernels().launch(driver.kernels().function(module, "wait"), 1, 1, b, 1);
    read(b);
    while (!streams.isIdle(a)) {
      Thread.onSpinWait();
    }
    written.countDown();
    end();
    assertThat(fake.races().found()).hasSize(1);
  }

  @Test
  void twoReadsAreNoRace() {
    write(a);
    order(b, a);
    read(a);
    streams.copy(other + 32, memory, 32, b);
    end();
    assertThat(fake.races().found()).as("of the copies' targets").hasSize(1);
  }

  private long capture(boolean joins) {
    driver.graphs().beginCapture(a);
    write(a);
    order(b, a);
    read(b);
    if (joins) {
      order(a, b);
    }
    write(a);
    return driver.graphs().endCapture(a);
  }

  @Test
  void aCaptureForksAndJoins() {
    write(b);
    order(a, b);
    long graph = driver.graphs().instantiate(capture(true));
    assertThat(streams.isCapturing(b)).isFalse();
    driver.graphs().launch(graph, a);
    driver.graphs().launch(graph, a);
    order(b, a);
    read(b);
    end();
    assertThat(fake.races().found()).isEmpty();
    driver.graphs().launch(graph, a);
    read(b);
    end();
    assertThat(fake.races().found()).isNotEmpty();
  }

  @Test
  void aCaptureEndsOnlyIfAllStreamsAreJoined() {
    assertThatThrownBy(() -> capture(false))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("904");
    assertThat(streams.isCapturing(b)).isFalse();
  }

  @Test
  void noOrderLeadsIntoACapture() {
    driver.events().record(event, b);
    driver.graphs().beginCapture(a);
    assertThatThrownBy(() -> streams.waitFor(a, event)).hasMessageContaining("905");
    assertThatThrownBy(() -> driver.graphs().endCapture(a)).hasMessageContaining("901");
  }

  @Test
  void onlyTheFirstStreamEndsACapture() {
    driver.graphs().beginCapture(a);
    write(a);
    order(b, a);
    assertThatThrownBy(() -> driver.graphs().endCapture(b)).hasMessageContaining("903");
    assertThatThrownBy(() -> driver.graphs().endCapture(a)).hasMessageContaining("901");
  }
}
