package dev.tutti.cuda.nccl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.cuda.driver.Errors;
import dev.tutti.cuda.share.ProcessMark;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** The calls of a loaded {@code libnccl.so.2}. */
final class LibNccl extends NativeFunctions implements NcclCalls {
  /*
   * The configuration of a communicator has the layout of NCCL 2.18: newer versions accept it and
   * use defaults for the rest.
   */
  private static final int CONFIG_BYTES = 48;
  private static final int CONFIG_MAGIC = 0xcafebeef;
  private static final int CONFIG_VERSION = 21801;
  private static final int UNDEFINED = Integer.MIN_VALUE;
  private static final int HOST_IMMEDIATE = 1;
  private static final int ONE_COLOR = 0;
  private static final VarHandle HANDLE = JAVA_LONG.varHandle();
  private static final long TEXT_BYTES = 4096;

  /** Two addresses, a count, a type, an operator or a root, a communicator and a stream. */
  private static final MemoryLayout[] COLLECTIVE = {
    JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG
  };

  private final MethodHandle getVersion = function("ncclGetVersion", JAVA_LONG);
  private final MethodHandle getUniqueId = function("ncclGetUniqueId", JAVA_LONG);
  private final MethodHandle initRank =
      function(
          "ncclCommInitRankConfig",
          JAVA_LONG,
          JAVA_INT,
          MemoryLayout.structLayout(MemoryLayout.sequenceLayout(UNIQUE_ID_BYTES, JAVA_BYTE)),
          JAVA_INT,
          JAVA_LONG);
  private final MethodHandle split =
      function("ncclCommSplit", JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
  private final MethodHandle getAsyncError =
      function("ncclCommGetAsyncError", JAVA_LONG, JAVA_LONG);
  private final MethodHandle getLastError = text("ncclGetLastError", JAVA_LONG);
  private final MethodHandle getErrorString = text("ncclGetErrorString", JAVA_INT);
  private final MethodHandle start = function("ncclGroupStart");
  private final MethodHandle end = function("ncclGroupEnd");
  private final MethodHandle allReduce = function("ncclAllReduce", COLLECTIVE);
  private final MethodHandle reduce =
      function(
          "ncclReduce",
          JAVA_LONG,
          JAVA_LONG,
          JAVA_LONG,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_LONG,
          JAVA_LONG);
  private final MethodHandle reduceScatter = function("ncclReduceScatter", COLLECTIVE);
  private final MethodHandle broadcast = function("ncclBroadcast", COLLECTIVE);
  private final MethodHandle allGather =
      function("ncclAllGather", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
  private final MethodHandle send =
      function("ncclSend", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
  private final MethodHandle receive =
      function("ncclRecv", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
  private final MethodHandle createScaledSum =
      function("ncclRedOpCreatePreMulSum", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG);
  private final MethodHandle destroyOp = function("ncclRedOpDestroy", JAVA_INT, JAVA_LONG);
  private final MethodHandle finalizeComm = function("ncclCommFinalize", JAVA_LONG);
  private final MethodHandle destroyComm = function("ncclCommDestroy", JAVA_LONG);
  private final MethodHandle abortComm = function("ncclCommAbort", JAVA_LONG);

  /**
   * Links the functions.
   *
   * @throws dev.tutti.BackendException if a function is missing
   */
  LibNccl(SymbolLookup library) {
    super(library);
  }

  /** A call of the library; only a method handle's declaration says that it throws. */
  private interface Call<T> {
    T run() throws Throwable;
  }

  private static <T> T call(Call<T> call) {
    try {
      return call.run();
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  /** Throws if a call that may also be in progress has failed. */
  private void require(int result, String call) {
    if (result != NcclResult.SUCCESS && result != NcclResult.IN_PROGRESS) {
      throw new NcclException(
          call + " failed: " + describe(result) + " (" + result + "); " + lastError(0), result);
    }
  }

  @Override
  public int version() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment cell = arena.allocate(JAVA_INT);
      require((int) getVersion.invokeExact(cell.address()), "ncclGetVersion");
      return cell.get(JAVA_INT, 0);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public byte[] uniqueId() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment id = arena.allocate(UNIQUE_ID_BYTES);
      require((int) getUniqueId.invokeExact(id.address()), "ncclGetUniqueId");
      return id.toArray(JAVA_BYTE);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  private static MemorySegment config(Arena arena, boolean blocking, boolean shares) {
    MemorySegment config = arena.allocate(CONFIG_BYTES, Long.BYTES);
    config.set(JAVA_LONG, 0, CONFIG_BYTES);
    config.set(JAVA_INT, 8, CONFIG_MAGIC);
    config.set(JAVA_INT, 12, CONFIG_VERSION);
    config.set(JAVA_INT, 16, blocking ? 1 : 0);
    config.set(JAVA_INT, 20, UNDEFINED); // cgaClusterSize
    config.set(JAVA_INT, 24, UNDEFINED); // minCTAs
    config.set(JAVA_INT, 28, UNDEFINED); // maxCTAs
    config.set(JAVA_LONG, 32, 0); // netName
    config.set(JAVA_INT, 40, shares ? 1 : 0); // splitShare: includes the abort flag
    return config;
  }

  @Override
  public long init(byte[] id, int size, int rank, boolean shares) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment cell = arena.allocate(JAVA_LONG);
      MemorySegment copy = arena.allocate(UNIQUE_ID_BYTES);
      copy.copyFrom(MemorySegment.ofArray(id).asSlice(0, UNIQUE_ID_BYTES));
      int result =
          (int)
              initRank.invokeExact(
                  cell.address(), size, copy, rank, config(arena, false, shares).address());
      long made = cell.get(JAVA_LONG, 0);
      try {
        require(result, "ncclCommInitRankConfig");
      } catch (NcclException e) {
        if (made != 0) {
          int _ = (int) abortComm.invokeExact(made);
        }
        throw e;
      }
      return made;
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public String process() {
    return ProcessMark.host() + " " + ProcessMark.own();
  }

  @Override
  public boolean sharesAborts() {
    return !"0".equals(System.getenv("NCCL_COMM_SPLIT_SHARE_RESOURCES"));
  }

  @Override
  public Child splitBlocking(long communicator, int rank) {
    return split(communicator, ONE_COLOR, rank, true);
  }

  @Override
  public Child split(long communicator, int color, int rank) {
    return split(communicator, color, rank, false);
  }

  private Child split(long communicator, int color, int rank, boolean blocking) {
    // NCCL writes here when it is done, possibly after the caller has given up.
    MemorySegment cell = Arena.global().allocate(JAVA_LONG);
    try (Arena arena = Arena.ofConfined()) {
      require(
          (int)
              split.invokeExact(
                  communicator,
                  color,
                  rank,
                  cell.address(),
                  config(arena, blocking, true).address()),
          "ncclCommSplit");
      return () -> (long) HANDLE.getAcquire(cell, 0L);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public int state(long communicator) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment cell = arena.allocate(JAVA_INT);
      int result = (int) getAsyncError.invokeExact(communicator, cell.address());
      return result == NcclResult.SUCCESS ? cell.get(JAVA_INT, 0) : result;
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public String lastError(long communicator) {
    return call(() -> read((long) getLastError.invokeExact(communicator)));
  }

  @Override
  public String describe(int result) {
    return call(() -> read((long) getErrorString.invokeExact(result)));
  }

  private static String read(long address) {
    return address == 0
        ? ""
        : MemorySegment.ofAddress(address).reinterpret(TEXT_BYTES).getString(0).strip();
  }

  @Override
  public int groupStart() {
    return call(() -> (int) start.invokeExact());
  }

  @Override
  public int groupEnd() {
    return call(() -> (int) end.invokeExact());
  }

  @Override
  public int allReduce(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    return call(() -> (int) allReduce.invokeExact(from, to, count, type, op, communicator, stream));
  }

  @Override
  public int reduce(
      long from, long to, long count, int type, int op, int root, long communicator, long stream) {
    return call(
        () -> (int) reduce.invokeExact(from, to, count, type, op, root, communicator, stream));
  }

  @Override
  public int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    return call(
        () -> (int) reduceScatter.invokeExact(from, to, count, type, op, communicator, stream));
  }

  @Override
  public int broadcast(long from, long to, long bytes, int root, long communicator, long stream) {
    return call(
        () ->
            (int)
                broadcast.invokeExact(from, to, bytes, NcclTypes.BYTE, root, communicator, stream));
  }

  @Override
  public int allGather(long from, long to, long bytes, long communicator, long stream) {
    return call(
        () -> (int) allGather.invokeExact(from, to, bytes, NcclTypes.BYTE, communicator, stream));
  }

  @Override
  public int send(long from, long bytes, int peer, long communicator, long stream) {
    return call(
        () -> (int) send.invokeExact(from, bytes, NcclTypes.BYTE, peer, communicator, stream));
  }

  @Override
  public int receive(long to, long bytes, int peer, long communicator, long stream) {
    return call(
        () -> (int) receive.invokeExact(to, bytes, NcclTypes.BYTE, peer, communicator, stream));
  }

  @Override
  public int scaledSum(long factor, int type, long communicator) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment op = arena.allocate(JAVA_INT);
      MemorySegment scalar = arena.allocateFrom(JAVA_LONG, factor);
      require(
          (int)
              createScaledSum.invokeExact(
                  op.address(), scalar.address(), type, HOST_IMMEDIATE, communicator),
          "ncclRedOpCreatePreMulSum");
      return op.get(JAVA_INT, 0);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public int freeOperator(int op, long communicator) {
    return call(() -> (int) destroyOp.invokeExact(op, communicator));
  }

  @Override
  public int finish(long communicator) {
    return call(() -> (int) finalizeComm.invokeExact(communicator));
  }

  @Override
  public int destroy(long communicator) {
    return call(() -> (int) destroyComm.invokeExact(communicator));
  }

  @Override
  public int abort(long communicator) {
    return call(() -> (int) abortComm.invokeExact(communicator));
  }
}
