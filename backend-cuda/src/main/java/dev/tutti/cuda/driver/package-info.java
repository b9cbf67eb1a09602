/**
 * The port to the CUDA driver, and its adapter.
 *
 * <p>JCuda makes and destroys devices' contexts, modules, streams, events and allocations. What is
 * done with them in every operation, such as launches, goes to {@code libcuda.so.1} directly: JCuda
 * takes objects that hide the driver's numbers, and allocates for its arguments. So does what JCuda
 * lacks or has broken: virtual memory, handles for other processes, page-locked memory of more than
 * 2 GiB, and everything on objects that JCuda did not make.
 */
@NullMarked
package dev.tutti.cuda.driver;

import org.jspecify.annotations.NullMarked;
