package dev.tutti.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * The products of bfloat16 matrices by cuBLAS, in one stream. Called as PyTorch calls it, so that
 * both run the same kernels.
 */
final class GpuCublas {
  private static final int REAL_16BF = 14;
  private static final int COMPUTE_32F = 68;
  private static final int DEFAULT_TENSOR_OP = 99;
  private static final long WORKSPACE = 32L << 20;

  private final MethodHandle gemm;
  private final long handle;
  private final MemorySegment one = constant(1);
  private final MemorySegment zero = constant(0);
  private final Tensor workspace;

  /**
   * Opens the library.
   *
   * @param library the path of {@code libcublas.so.13} or {@code .12}
   * @param stream the stream of all calls
   */
  GpuCublas(Path library, CudaStream stream) {
    stream.device().context().enter();
    SymbolLookup symbols = SymbolLookup.libraryLookup(library, Arena.global());
    MemorySegment out = Arena.global().allocate(JAVA_LONG);
    call(function(symbols, "cublasCreate_v2", ADDRESS), out);
    handle = out.get(JAVA_LONG, 0);
    call(function(symbols, "cublasSetStream_v2", JAVA_LONG, JAVA_LONG), handle, stream.handle());
    workspace = stream.device().tensors().allocate(DType.UINT8, WORKSPACE);
    call(
        function(symbols, "cublasSetWorkspace_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG),
        handle,
        workspace.segment().address(),
        WORKSPACE);
    gemm =
        function(
            symbols,
            "cublasGemmEx",
            JAVA_LONG,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            ADDRESS,
            JAVA_LONG,
            JAVA_INT,
            JAVA_INT,
            JAVA_LONG,
            JAVA_INT,
            JAVA_INT,
            ADDRESS,
            JAVA_LONG,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT);
  }

  private static MemorySegment constant(float value) {
    MemorySegment cell = Arena.global().allocate(JAVA_FLOAT);
    cell.set(JAVA_FLOAT, 0, value);
    return cell;
  }

  private static MethodHandle function(SymbolLookup in, String name, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(in.findOrThrow(name), FunctionDescriptor.of(JAVA_INT, parameters));
  }

  private static void call(MethodHandle function, Object... arguments) {
    require(() -> (int) function.invokeWithArguments(arguments));
  }

  /** A call of the library, which returns a status. */
  private interface Call {
    int run() throws Throwable;
  }

  private static void require(Call call) {
    int status;
    try {
      status = call.run();
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
    if (status != 0) {
      throw new IllegalStateException("cuBLAS returned " + status);
    }
  }

  /** A layer's forward pass: the outputs are the inputs times the transposed weights. */
  void forward(Tensor inputs, Tensor weights, Tensor outputs) {
    multiply(true, false, weights, inputs, outputs);
  }

  /** The gradient of a layer's inputs: that of its outputs times the weights. */
  void inputGradient(Tensor outputGradient, Tensor weights, Tensor gradient) {
    multiply(false, false, weights, outputGradient, gradient);
  }

  /** The gradient of a layer's weights: the transposed one of its outputs times the inputs. */
  void weightGradient(Tensor outputGradient, Tensor inputs, Tensor gradient) {
    multiply(false, true, inputs, outputGradient, gradient);
  }

  /** Multiplies square matrices, column by column, as cuBLAS sees those that are row by row. */
  private void multiply(boolean first, boolean second, Tensor a, Tensor b, Tensor c) {
    int n = (int) c.size(0);
    require(
        () ->
            (int)
                gemm.invokeExact(
                    handle,
                    first ? 1 : 0,
                    second ? 1 : 0,
                    n,
                    n,
                    n,
                    one,
                    a.segment().address(),
                    REAL_16BF,
                    n,
                    b.segment().address(),
                    REAL_16BF,
                    n,
                    zero,
                    c.segment().address(),
                    REAL_16BF,
                    n,
                    COMPUTE_32F,
                    DEFAULT_TENSOR_OP));
  }
}
