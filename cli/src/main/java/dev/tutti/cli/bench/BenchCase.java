package dev.tutti.cli.bench;

import dev.tutti.Tensor;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * One operation at one size, ready to run on this rank.
 *
 * @param bytes what nccl-tests calls size: the bytes of the whole, over all ranks where each has a
 *     part
 * @param count elements of the whole, or of one rank's part
 * @param operations how many operations a call runs; a rooted one runs once with each root
 * @param call runs it
 * @param check runs it on data of its own and returns the number of wrong elements on this rank
 * @param buffers what the call reads and writes
 */
record BenchCase(
    long bytes,
    long count,
    int operations,
    Runnable call,
    LongSupplier check,
    List<Tensor> buffers) {}
