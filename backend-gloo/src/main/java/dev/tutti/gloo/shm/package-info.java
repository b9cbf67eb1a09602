/**
 * Collectives among the ranks of one host through the memory that they share.
 *
 * <p>Everywhere, an <em>operation</em> carries the deadline, a <em>kind</em> is that of the
 * operator, and sizes are in bytes. A method that waits throws what ends the wait.
 */
package dev.tutti.gloo.shm;
