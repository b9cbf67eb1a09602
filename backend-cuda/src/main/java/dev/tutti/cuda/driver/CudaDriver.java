package dev.tutti.cuda.driver;

/**
 * The part of the CUDA driver that this module needs, divided by concern.
 *
 * <p>All methods may be called from any thread. A call that works on a stream, event, module, or
 * allocation requires the context of its device to be {@linkplain ContextCalls#setCurrent current}
 * on the calling thread. Every call throws a {@link dev.tutti.cuda.CudaException} when the driver
 * reports an error. Handles and device addresses are the driver's own numbers; the driver checks
 * them only in part, so an invalid one may crash the process.
 *
 * @param devices queries about the devices
 * @param contexts the context in which a thread works
 * @param kernels loading and launching code
 * @param streams queues of work, and copies in them
 * @param events points in streams
 * @param memory device memory and page-locked host memory
 * @param virtualMemory physical memory and address ranges, managed separately
 * @param graphs captured work
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
