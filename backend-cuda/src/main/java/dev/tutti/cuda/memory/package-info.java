/**
 * Device memory and page-locked host memory, cached for reuse.
 *
 * <p>A <em>segment</em> is device memory obtained from the driver. A <em>block</em> is a part of
 * one, or of page-locked memory, that has one user; it is free again when all <em>streams</em> that
 * work on it have reached the end of that work.
 */
package dev.tutti.cuda.memory;
