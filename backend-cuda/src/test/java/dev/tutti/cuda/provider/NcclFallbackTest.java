package dev.tutti.cuda.provider;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.NoNccl;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests groups on backend {@code cuda} with more ranks than can share memory. */
class NcclFallbackTest {
  private static final int RANKS = 9;

  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() {
    machine = new FakeMachine(RANKS);
    nccl = new FakeNccl(machine.fake);
  }

  @AfterEach
  void nothingIsLeft() {
    machine.close();
    assertThat(nccl.communicators()).isZero();
  }

  private BackendProvider provider(NcclCalls calls) {
    return new CudaBackendProvider(() -> machine.cuda, Optional::empty, settings -> calls);
  }

  @Test
  void ncclJoinsThem() throws Exception {
    new CudaRanks(machine.cuda)
        .on(provider(nccl))
        .run(
            RANKS,
            (group, device) -> {
              int rank = group.rank();
              Tensor sum = device.tensors().copyOf(Tensor.of(rank));
              group.allReduce(sum);
              assertThat(device.tensors().toHost(sum).toIntArray()).containsExactly(36);
              Tensor received = device.tensors().copyOf(Tensor.of(-1));
              Tensor sent = device.tensors().copyOf(Tensor.of(rank));
              Work send = group.send(sent, (rank + 1) % RANKS, 0, CallOptions.ASYNC);
              group.recv(received, (rank + RANKS - 1) % RANKS);
              send.await();
              assertThat(device.tensors().toHost(received).toIntArray())
                  .containsExactly((rank + RANKS - 1) % RANKS);
            });
  }

  @Test
  void whatNcclLacksIsRefusedAndTheGroupGoesOn() throws Exception {
    new CudaRanks(machine.cuda)
        .on(provider(nccl))
        .run(
            RANKS,
            (group, device) -> {
              Tensor sum = device.tensors().copyOf(Tensor.of(1));
              assertThatThrownBy(() -> group.allReduce(sum, ReduceOp.BAND))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("NCCL, which connects the ranks, cannot reduce int32");
              assertThatThrownBy(() -> group.allocateSymmetric(100))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("connected by NCCL")
                  .hasMessageContaining("8 ranks at most, not 9");
              group.allReduce(sum);
              assertThat(device.tensors().toHost(sum).toIntArray()).containsExactly(RANKS);
            });
  }

  @Test
  void aRankWithoutNcclIsNamedByAll() throws Exception {
    HashStore store = new HashStore();
    try (ExecutorService threads = Executors.newFixedThreadPool(RANKS)) {
      List<Future<?>> futures = new ArrayList<>();
      for (int r = 0; r < RANKS; r++) {
        int rank = r;
        BackendProvider own =
            rank == 3
                ? new CudaBackendProvider(() -> machine.cuda, Optional::empty, NoNccl.HERE)
                : provider(nccl);
        CudaRanks ranks = new CudaRanks(machine.cuda).on(own);
        futures.add(
            threads.submit(
                () ->
                    assertThatThrownBy(
                            () -> ProcessGroup.init(ranks.options(store, rank, RANKS)).close())
                        .isInstanceOf(TuttiException.class)
                        .hasMessageContaining("8 ranks at most, not 9")
                        .hasMessageContaining("but rank 3 has no NCCL: no NCCL in")));
      }
      for (Future<?> future : futures) {
        future.get(60, TimeUnit.SECONDS);
      }
    }
  }
}
