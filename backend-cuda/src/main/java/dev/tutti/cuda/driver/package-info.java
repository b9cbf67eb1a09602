/**
 * The port to the CUDA driver, and its adapter.
 *
 * <p>JCuda creates and destroys contexts, modules, streams, events, and allocations. The calls that
 * use them in every operation, such as launches, go directly to {@code libcuda.so.1}: JCuda takes
 * objects that hide the driver's numbers, and allocates memory for its arguments. So do the calls
 * that JCuda lacks or gets wrong: virtual memory, handles for other processes, page-locked memory
 * of more than 2 GiB, and everything on objects that JCuda did not create.
 */
package dev.tutti.cuda.driver;
