/** Holds the compiled CUDA kernels of Tutti, and how to launch them. */
@NullMarked
package dev.tutti.kernels;

import org.jspecify.annotations.NullMarked;
