/**
 * Holds devices, streams and memory of NVIDIA GPUs, and the backends <i>cuda</i> and <i>nccl</i>.
 */
@NullMarked
package dev.tutti.cuda;

import org.jspecify.annotations.NullMarked;
