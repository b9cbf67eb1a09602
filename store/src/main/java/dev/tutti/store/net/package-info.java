/**
 * The parts that servers on sockets share: ports just released, and a log that strangers cannot
 * flood.
 */
package dev.tutti.store.net;
