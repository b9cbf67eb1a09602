package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.StreamBlockProvider;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

class HostStreamBlockTest extends StreamBlockContract {
  @Override
  protected StreamBlockFixture fixture() {
    return new HostDevice();
  }

  @Test
  void aThreadWithoutAStreamIsTold() throws Exception {
    FutureTask<Throwable> other = new FutureTask<>(() -> catchThrowable(HostStream::current));
    Thread.ofPlatform().start(other);
    assertThat(other.get())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("makeCurrent");
  }

  @Test
  void aClosedStreamTakesNoTasks() {
    HostStream stream = new HostStream();
    stream.close();
    stream.close();
    Waiting.until("the end of the stream's thread", stream::hasEnded);
    assertThatThrownBy(stream::record).isInstanceOf(IllegalStateException.class);
  }

  private static final class HostDevice implements StreamBlockFixture {
    private final List<HostStream> streams = new CopyOnWriteArrayList<>();

    @Override
    public StreamBlockProvider provider() {
      return new HostStreamBlockProvider();
    }

    @Override
    public void useNewStream() {
      HostStream stream = new HostStream();
      streams.add(stream);
      stream.makeCurrent();
    }

    @Override
    public DeviceEvent record() {
      return HostStream.current().record();
    }

    @Override
    public void close() {
      for (HostStream stream : streams) {
        stream.close();
        Waiting.until("the end of the stream's thread", stream::hasEnded);
      }
    }
  }
}
