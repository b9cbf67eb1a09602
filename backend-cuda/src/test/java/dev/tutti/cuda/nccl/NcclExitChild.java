package dev.tutti.cuda.nccl;

import dev.tutti.CallOptions;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.store.HashStore;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/**
 * A process that prints the time and exits with status 7, unless the C library's exit handlers run:
 * one of them then ends it with status 9. The argument is the state of its two ranks' group at the
 * exit: {@code connecting} to rank 1, {@code open}, {@code waiting} for rank 1 in an operation, or
 * {@code closed}.
 */
final class NcclExitChild {
  private static final int STATUS = 7;
  private static final int STATUS_OF_HANDLERS = 9;

  private NcclExitChild() {}

  public static void main(String[] args) throws Exception {
    addExitHandler();
    FakeMachine machine = new FakeMachine(2);
    FakeNccl nccl = new FakeNccl(machine.fake);
    CudaRanks ranks =
        new CudaRanks(machine.cuda)
            .on(new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl));
    String end = args[0];
    if (end.equals("connecting")) {
      GroupOptions options = ranks.options(new HashStore(), 0, 2);
      Thread _ = Thread.ofPlatform().start(() -> ProcessGroup.init(options));
      Until.holds("the beginning of a communicator", () -> nccl.communicators() > 0);
      exit();
    }
    ranks.run(
        2,
        (group, device) -> {
          group.allReduce(device.tensors().copyOf(Tensor.of(1f)));
          group.barrier();
          if (group.rank() == 0 && end.equals("waiting")) {
            Tensor one = device.tensors().copyOf(Tensor.of(1f));
            Work _ = group.allReduce(one, ReduceOp.SUM, CallOptions.ASYNC);
          }
          if (group.rank() == 0 && !end.equals("closed")) {
            exit();
          } else if (!end.equals("closed")) {
            Thread.currentThread().join();
          }
        });
    Until.holds("the end of the threads of NCCL", NcclExitChild::isNcclOver);
    exit();
  }

  /** Returns whether the threads have ended for which the close of a group waits for a second. */
  private static boolean isNcclOver() {
    return Thread.getAllStackTraces().keySet().stream()
        .noneMatch(thread -> thread.getName().equals("tutti-nccl-close"));
  }

  private static void exit() {
    System.out.println(System.currentTimeMillis());
    System.exit(STATUS);
  }

  /** Registers a handler as NCCL does; that one may never return. */
  private static void addExitHandler() throws Exception {
    SymbolLookup library = Linker.nativeLinker().defaultLookup();
    try {
      int refused =
          (int)
              Linker.nativeLinker()
                  .downcallHandle(
                      library.findOrThrow("__cxa_atexit"),
                      FunctionDescriptor.of(
                          ValueLayout.JAVA_INT,
                          ValueLayout.ADDRESS,
                          ValueLayout.JAVA_LONG,
                          ValueLayout.JAVA_LONG))
                  .invokeExact(library.findOrThrow("_exit"), (long) STATUS_OF_HANDLERS, 0L);
      if (refused != 0) {
        throw new IllegalStateException("__cxa_atexit returned " + refused);
      }
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }
}
