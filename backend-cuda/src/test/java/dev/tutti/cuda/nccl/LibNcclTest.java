package dev.tutti.cuda.nccl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Tests calls of a library whose functions are Java methods. */
class LibNcclTest {
  private static final long HANDLE = 0x1234;
  private static final int SYSTEM_ERROR = 2;
  private static final MemoryLayout ID =
      MemoryLayout.structLayout(MemoryLayout.sequenceLayout(NcclCalls.UNIQUE_ID_BYTES, JAVA_BYTE));

  private final List<Long> aborted = new ArrayList<>();
  private long left;

  int init(long cell, int size, MemorySegment id, int rank, long config) {
    MemorySegment.ofAddress(cell).reinterpret(JAVA_LONG.byteSize()).set(JAVA_LONG, 0, left);
    return SYSTEM_ERROR;
  }

  int abort(long communicator) {
    aborted.add(communicator);
    return NcclResult.SUCCESS;
  }

  long text(long argument) {
    return 0;
  }

  long text(int argument) {
    return 0;
  }

  private MemorySegment stub(Arena arena, String method, FunctionDescriptor function)
      throws ReflectiveOperationException {
    MethodType type = function.toMethodType();
    MethodHandle handle = MethodHandles.lookup().bind(this, method, type);
    return Linker.nativeLinker().upcallStub(handle, function, arena);
  }

  /** Returns functions; those that are not faked must not be called. */
  private LibNccl library(Arena arena) throws ReflectiveOperationException {
    FunctionDescriptor init =
        FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, ID, JAVA_INT, JAVA_LONG);
    MemorySegment abort = stub(arena, "abort", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    Map<String, MemorySegment> played =
        Map.of(
            "ncclCommInitRankConfig",
            stub(arena, "init", init),
            "ncclCommAbort",
            abort,
            "ncclGetLastError",
            stub(arena, "text", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG)),
            "ncclGetErrorString",
            stub(arena, "text", FunctionDescriptor.of(JAVA_LONG, JAVA_INT)));
    return new LibNccl(name -> Optional.of(played.getOrDefault(name, abort)));
  }

  private void refuse() throws ReflectiveOperationException {
    try (Arena arena = Arena.ofConfined()) {
      LibNccl nccl = library(arena);
      assertThatThrownBy(() -> nccl.init(new byte[NcclCalls.UNIQUE_ID_BYTES], 2, 0, true))
          .isInstanceOf(NcclException.class)
          .hasMessage("ncclCommInitRankConfig failed:  (2); ");
    }
  }

  @Test
  void whatARefusedSetUpLeavesIsFreed() throws Exception {
    left = HANDLE;
    refuse();
    assertThat(aborted).containsExactly(HANDLE);
  }

  @Test
  void aRefusedSetUpThatLeavesNothingFreesNothing() throws Exception {
    refuse();
    assertThat(aborted).isEmpty();
  }
}
