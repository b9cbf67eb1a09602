package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Batch;
import dev.tutti.Capabilities.Feature;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class BatchTest {
  @Test
  void aBadPartRefusesTheWholeBeforeAnythingIsSent() {
    ScriptedProvider provider = new ScriptedProvider();
    List<String> started = new CopyOnWriteArrayList<>();
    provider.allReduce = (op, tensor) -> started.add("allReduce");
    provider.send =
        (op, tensor, peer) -> {
          started.add("send");
          op.complete();
        };
    try (ProcessGroup group = provider.join(2)) {
      Batch batch =
          group
              .batch()
              .send(Tensor.of(1f), 1, 0)
              .allReduce(Tensor.of(1f), ReduceOp.SUM)
              .send(Tensor.of(1f), 2, 0);
      assertThatThrownBy(batch::run)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("peer must be a rank in 0..1, not 2");
      assertThat(started).isEmpty();
      assertThat(group.sequenceNumber()).isZero();
      group.batch().send(Tensor.of(1f), 1, 0).allReduce(Tensor.of(1f), ReduceOp.SUM).run();
      assertThat(started).containsExactlyInAnyOrder("send", "allReduce");
    }
  }

  @Test
  void aTagRefusesTheWholeWhereTheBackendHasNone() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.features = new Feature[] {};
    AtomicInteger sent = new AtomicInteger();
    provider.send =
        (op, tensor, peer) -> {
          sent.incrementAndGet();
          op.complete();
        };
    try (ProcessGroup group = provider.join(2)) {
      Tensor tensor = Tensor.of(1f);
      assertThatThrownBy(group.batch().send(tensor, 1, 0).send(tensor, 1, 4)::run)
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("send on rank 0: backend 'scripted' does not support the tag 4");
      assertThat(sent).hasValue(0);
      group.batch().send(tensor, 1, 0).send(tensor, 1, 0).run();
      assertThat(sent).hasValue(2);
    }
  }

  @Test
  void nothingOfABatchIsPendingAfterAPartWasRefused() {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicReference<Operation> pending = new AtomicReference<>();
    provider.recv = (op, tensor, peer) -> pending.set(op);
    provider.send =
        (op, tensor, peer) -> {
          throw new UnsupportedOperationException("not now");
        };
    provider.abort = cause -> pending.get().fail(cause, -1);
    try (ProcessGroup group = provider.join(2)) {
      Batch batch = group.batch().recv(Tensor.of(1f), 1, 0).send(Tensor.of(1f), 1, 0);
      assertThatThrownBy(batch::run)
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("not now");
      assertThat(pending.get().isDone()).isTrue();
      assertThatThrownBy(() -> group.recv(Tensor.of(1f), 1))
          .hasMessageContaining("a batch was started in part");
    }
  }
}
