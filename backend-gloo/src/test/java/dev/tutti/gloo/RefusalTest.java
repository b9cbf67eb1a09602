package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what a collective leaves behind if it rejects a call after it has begun. */
@Timeout(300)
class RefusalTest {
  @Test
  void messagesAndLaterCollectivesGoOn(@TempDir Path directory) throws Exception {
    GlooWorld.run(
        2,
        GlooWorld.settings(),
        new HostsProvider(directory, rank -> 0),
        group -> {
          int peer = 1 - group.rank();
          // Only at the rendezvous do the ranks find out that they cannot read such small tensors.
          CallOptions direct = CallOptions.DEFAULT.withAlgorithm(AllReduceAlgorithm.DIRECT);
          Tensor in = Tensor.of(-1f);
          Work receive = group.recv(in, peer, 0, CallOptions.ASYNC);
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, direct))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("algorithm direct needs tensors");
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
