package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gloo.algorithm.Collectives;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what a collective leaves behind that refuses a call after it was begun. */
@Timeout(120)
class RefusalTest {
  private static final long REFUSED = 7;

  /** Refuses to reduce tensors of one size, as a collective might that cannot go on. */
  private static Collectives refusing(Collectives inner) {
    return (Collectives)
        Proxy.newProxyInstance(
            Collectives.class.getClassLoader(),
            new Class<?>[] {Collectives.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("allReduce")
                  && ((Tensor) arguments[1]).numel() == REFUSED) {
                throw new UnsupportedOperationException("not " + REFUSED);
              }
              try {
                return method.invoke(inner, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static final class Provider extends HostsProvider {
    Provider(Path directory) {
      super(directory, rank -> 0);
    }

    @Override
    public Backend create(BackendContext context) throws Exception {
      GlooBackend made = (GlooBackend) super.create(context);
      return new GlooBackend(made.transport, made.wire, refusing(made.collectives), made.memories);
    }
  }

  @Test
  void messagesAndLaterCollectivesGoOn(@TempDir Path directory) throws Exception {
    GlooWorld.run(
        2,
        GlooWorld.settings(),
        new Provider(directory),
        group -> {
          int peer = 1 - group.rank();
          Tensor in = Tensor.of(-1f);
          Work receive = group.recv(in, peer, 0, CallOptions.ASYNC);
          assertThatThrownBy(() -> group.allReduce(Tensor.allocate(in.dtype(), REFUSED)))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessage("not 7");
          assertThat(receive.isCompleted()).isFalse();
          Tensor sum = Tensor.of(1f, 2f);
          group.allReduce(sum);
          assertThat(sum.toFloatArray()).containsExactly(2, 4);
          group.send(Tensor.of((float) group.rank()), peer);
          receive.await();
          assertThat(in.toFloatArray()).containsExactly(peer);
          return null;
        });
  }
}
