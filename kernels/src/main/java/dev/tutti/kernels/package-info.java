/**
 * Holds the compiled CUDA kernels of Tutti, and how to launch them, for backends that bring a
 * driver of their own. Programs need none of it.
 *
 * <p>Begin with {@link dev.tutti.kernels.KernelImage}, which has the code, and {@link
 * dev.tutti.kernels.Kernels}, which names the kernels in it. {@link dev.tutti.kernels.ReduceCall}
 * and {@link dev.tutti.kernels.ExchangeCall} lay out their arguments.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="kernels"}
 */
@NullMarked
package dev.tutti.kernels;

import org.jspecify.annotations.NullMarked;
