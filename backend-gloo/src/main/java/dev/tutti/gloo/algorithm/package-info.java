/**
 * Collectives over sockets, a class for each algorithm, and the choice among them.
 *
 * <p>Arguments have the same meaning everywhere and are described here only: an <em>operation</em>
 * carries the deadline; a <em>tag</em> is the number of the collective; a <em>transport</em>
 * connects the ranks; <em>scratch</em> memory is shared by all algorithms of a group. Tensors are
 * contiguous, and sizes are in bytes. A method that waits throws what ends the wait.
 */
package dev.tutti.gloo.algorithm;
