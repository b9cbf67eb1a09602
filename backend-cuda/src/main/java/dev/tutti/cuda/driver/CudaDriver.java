package dev.tutti.cuda.driver;

/**
 * The part of the CUDA driver that this module needs, by concern.
 *
 * <p>Any thread may call any method. A call that works on a stream, event, module or allocation
 * needs the context of its device to be {@linkplain ContextCalls#setCurrent current} on the calling
 * thread. Every call throws a {@link dev.tutti.cuda.CudaException} when the driver reports an
 * error. Handles and device addresses are the driver's own numbers; the driver checks them only in
 * part, so that a wrong one may end the process.
 *
 * @param devices what is there
 * @param contexts the context that a thread works in
 * @param kernels code and its launch
 * @param streams queues of work, and the copies in them
 * @param events points in streams
 * @param memory memory of devices and page-locked memory of the host
 * @param virtualMemory physical memory and addresses, each for itself
 * @param graphs recorded work
 */
public record CudaDriver(
    DeviceCalls devices,
    ContextCalls contexts,
    KernelCalls kernels,
    StreamCalls streams,
    EventCalls events,
    MemoryCalls memory,
    VirtualMemoryCalls virtualMemory,
    GraphCalls graphs) {}
