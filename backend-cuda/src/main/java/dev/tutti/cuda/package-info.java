/**
 * Devices, streams, and memory of NVIDIA GPUs, and the backends <i>cuda</i> and <i>nccl</i>.
 *
 * <p>Begin with {@link dev.tutti.cuda.Cuda}, which provides the devices, and {@link
 * dev.tutti.cuda.CudaDevice#tensors}, which allocates and copies tensors. A group whose options
 * name a device runs on that device. {@link dev.tutti.cuda.ipc.CudaIpc} shares tensors with other
 * processes.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="cuda"}
 */
@NullMarked
package dev.tutti.cuda;

import org.jspecify.annotations.NullMarked;
