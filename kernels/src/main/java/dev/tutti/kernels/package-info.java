/**
 * The compiled CUDA kernels of Tutti, and how to launch them, for backends that bring a driver of
 * their own. Programs do not need this package.
 *
 * <p>Begin with {@link dev.tutti.kernels.KernelImage}, which contains the code, and {@link
 * dev.tutti.kernels.Kernels}, which lists the kernels in it. {@link dev.tutti.kernels.ReduceCall}
 * and {@link dev.tutti.kernels.ExchangeCall} lay out their arguments.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="kernels"}
 */
@NullMarked
package dev.tutti.kernels;

import org.jspecify.annotations.NullMarked;
