package org.example.central;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class CentralBackendTest {
  private static final ThreadedWorld WORLD =
      ThreadedWorld.of(3).withProvider(new CentralProvider()).withTimeout(Duration.ofMinutes(2));

  @Test
  void callsThatDoNotFitFailOnAllRanks() {
    WORLD.run(
        group -> {
          Tensor tensor = Tensor.of(1f, 2f);
          assertThatThrownBy(
                  () -> {
                    if (group.rank() == 1) {
                      group.allReduce(tensor, ReduceOp.MAX);
                    } else {
                      group.allReduce(tensor, ReduceOp.SUM);
                    }
                  })
              .isInstanceOf(CollectiveException.class)
              .hasMessageMatching(".*rank 1 called allReduce .*MAX.*");
        });
  }

  @Test
  void messagesPassRanksThatClosed() {
    WORLD.run(
        group -> {
          switch (group.rank()) {
            case 0 -> group.close();
            case 1 -> {
              Tensor go = Tensor.of(0f);
              group.recv(go, 2);
              group.send(Tensor.of(7f, 8f), 2);
            }
            default -> {
              group.send(Tensor.of(1f), 1);
              Tensor received = Tensor.of(0f, 0f);
              group.recv(received, 1);
              assertThat(received.toFloatArray()).containsExactly(7, 8);
            }
          }
        });
  }
}
