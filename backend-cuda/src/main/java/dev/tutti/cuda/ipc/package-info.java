/**
 * CUDA tensors shared with other processes of a host, without a group. Begin with {@link
 * dev.tutti.cuda.ipc.CudaIpc}.
 */
@NullMarked
package dev.tutti.cuda.ipc;

import org.jspecify.annotations.NullMarked;
