/**
 * Two-level collectives: within each host through shared memory, between hosts through sockets.
 *
 * <p>Everywhere, an <em>operation</em> carries the deadline, and a <em>tag</em> is the number of
 * the collective. A method that waits throws what ends the wait.
 */
package dev.tutti.gloo.hier;
