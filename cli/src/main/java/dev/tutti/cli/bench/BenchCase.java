package dev.tutti.cli.bench;

import dev.tutti.Tensor;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * One operation at one size, ready to run on this rank.
 *
 * @param bytes the size in the sense of nccl-tests: the bytes of the whole, over all ranks if each
 *     has a part
 * @param count the number of elements of the whole, or of one rank's part
 * @param operations the number of operations that a call runs; a rooted one runs once with each
 *     root
 * @param call runs the operations
 * @param check runs the operations on its own data and returns the number of wrong elements on this
 *     rank
 * @param buffers the tensors that the call reads and writes
 */
record BenchCase(
    long bytes,
    long count,
    int operations,
    Runnable call,
    LongSupplier check,
    List<Tensor> buffers) {}
