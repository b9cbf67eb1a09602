package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.THROWABLE;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that rejected calls, repeated many times, give a reason and leave nothing behind. */
@Isolated("counts the descriptors of the process")
class RefusalTest {
  private static final int TIMES = 30;
  private static final int COPIES = 4; // their events have not been queried yet
  private static final int OTHERS = 20; // opened by concurrent tests

  private static final ThreadGroup THREADS = new ThreadGroup("refused");
  private static final List<FakeMachine> MACHINES = new ArrayList<>();

  private final FakeMachine machine = new FakeMachine(2);
  @TempDir private Path sockets;

  @BeforeEach
  void addMachine() {
    MACHINES.add(machine);
  }

  @AfterAll
  static void nothingIsLeft() {
    Until.holds("the end of the threads of groups", () -> THREADS.activeCount() == 0);
    MACHINES.forEach(FakeMachine::close);
  }

  /** What a rank or a test does in the group of threads under observation. */
  private interface Action {
    void run() throws Exception;
  }

  private void many(Action action) throws Exception {
    Throwable[] failure = new Throwable[1];
    int before = Fds.open().size();
    Thread thread =
        new Thread(
            THREADS,
            () -> {
              try {
                for (int i = 0; i < TIMES; i++) {
                  action.run();
                }
              } catch (Throwable e) {
                failure[0] = e;
              }
            });
    thread.start();
    thread.join();
    if (failure[0] != null) {
      throw new AssertionError(failure[0]);
    }
    for (int d = 0; d < 2; d++) {
      machine.cuda.device(d).tensors().releaseCached();
    }
    assertThat(Fds.open()).hasSizeLessThan(before + OTHERS);
    try (Stream<Path> files = Files.list(sockets)) {
      assertThat(files).isEmpty();
    }
    for (int d = 0; d < 2; d++) {
      assertThat(machine.cuda.device(d).events().inUse()).isLessThanOrEqualTo(COPIES);
      assertThat(machine.cuda.device(d).pinned().blocksInUse()).isZero();
    }
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda).with("TMPDIR", sockets.toString());
  }

  @Test
  void aGroupWithoutALink() throws Exception {
    machine.fake.cutLink(0, 1);
    many(
        () ->
            assertThatThrownBy(() -> ranks().run(2, (group, device) -> {}))
                .isInstanceOf(TuttiException.class)
                .hasStackTraceContaining("cannot reach the memory of rank")
                .hasStackTraceContaining("there is no NVLink between them"));
  }

  @Test
  void aGroupThatSharesADevice() throws Exception {
    many(
        () ->
            assertThatThrownBy(
                    () ->
                        ranks()
                            .onOneDevice()
                            .with("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "0")
                            .run(2, (group, device) -> {}))
                .isInstanceOf(TuttiException.class)
                .hasStackTraceContaining("give each rank its own, or set TORCH_SYMM_MEM"));
  }

  @Test
  void aGroupWhoseSocketsHaveNoDirectory() throws Exception {
    many(
        () ->
            assertThatThrownBy(() -> ranks().with("TMPDIR", "/proc").run(2, (group, device) -> {}))
                .isInstanceOf(TuttiException.class)
                .hasStackTraceContaining("cannot create the socket /proc/tutti-")
                .hasStackTraceContaining("is its directory writable? TMPDIR sets another"));
  }

  @Test
  void aGroupWhoseRanksHaveDifferentTokens() throws Exception {
    many(
        () ->
            assertThatThrownBy(
                    () ->
                        ranks()
                            .with("TUTTI_TOKEN", "one token of a job")
                            .withOnLast("TUTTI_TOKEN", "another token of a job")
                            .run(2, (group, device) -> {}))
                .isInstanceOf(TuttiException.class)
                .hasStackTraceContaining("TUTTI_TOKEN"));
  }

  @Test
  void aGroupWhoseSocketsHaveTooLongNames() throws Exception {
    String deep = sockets + "/" + "d".repeat(90);
    many(
        () ->
            assertThatThrownBy(() -> ranks().with("TMPDIR", deep).run(2, (group, device) -> {}))
                .isInstanceOf(TuttiException.class)
                .hasStackTraceContaining("the path of a socket can have 107 bytes at most")
                .hasStackTraceContaining("choose a shorter directory (TMPDIR)"));
  }

  @Test
  void aGroupOfWhichOneRankHasNoPageLockedMemory() throws Exception {
    many(
        () -> {
          machine.fake.failOn("cuMemHostAlloc", 1, CudaException.OUT_OF_MEMORY);
          assertThatThrownBy(() -> ranks().run(2, (group, device) -> {}))
              .isInstanceOf(TuttiException.class)
              .hasStackTraceContaining("cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY")
              .extracting(e -> e.getSuppressed()[0], THROWABLE)
              .hasStackTraceContaining("cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY");
          assertThat(machine.fake.memory().used()).isZero();
        });
  }

  @Test
  void tensorsThatCannotBeUsed() throws Exception {
    many(
        () ->
            ranks()
                .run(
                    2,
                    (group, device) -> {
                      Arena arena = Arena.ofShared();
                      Tensor freed = device.tensors().allocate(arena, DType.FLOAT32, 8);
                      CudaDevice other = machine.cuda.device(1 - device.index());
                      Tensor elsewhere = other.tensors().allocate(arena, DType.FLOAT32, 8);
                      arena.close();
                      for (int i = 0; i < TIMES; i++) {
                        assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining(
                                "tensor is on cpu, but the group has backends for [cuda]");
                        assertThatThrownBy(() -> group.allReduce(elsewhere, ReduceOp.SUM))
                            .hasStackTraceContaining(
                                "the group uses " + device + " on this rank, but");
                        assertThatThrownBy(() -> group.allReduce(freed, ReduceOp.SUM))
                            .hasStackTraceContaining(
                                "the memory of float32[8] on " + device + " was freed");
                      }
                    }));
  }

  @Test
  void ranksOfOneDeviceInItsDefaultStream() throws Exception {
    many(
        () ->
            ranks()
                .onOneDevice()
                .run(
                    2,
                    (group, device) -> {
                      try (Arena arena = Arena.ofShared()) {
                        Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, 1);
                        device.tensors().copyFromHost(tensor, Tensor.of(1f));
                        try (CudaStream.Scope _ = device.defaultStream().use()) {
                          assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
                              .hasStackTraceContaining(
                                  "rank "
                                      + (1 - group.rank())
                                      + " of this process also uses cuda:0")
                              .hasStackTraceContaining("CudaStream.use");
                        }
                        group.allReduce(tensor, ReduceOp.SUM);
                        assertThat(device.tensors().toHost(tensor).toFloatArray())
                            .containsExactly(2f);
                        group.barrier();
                      }
                    }));
  }

  @Test
  void aDriverThatIsTooOld() {
    machine.fake.setVersion(12040);
    assertThatThrownBy(
            () -> new Cuda(machine.fake.driver(), machine.fake.links(), () -> new byte[] {1, 2, 3}))
        .hasMessage(
            "the NVIDIA driver supports CUDA 12.4, but 13.0 is required; install a newer driver");
    assertThat(machine.fake.living()).isEmpty();
  }
}
