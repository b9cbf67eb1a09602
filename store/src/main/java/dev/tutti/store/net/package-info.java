/**
 * The parts that servers on sockets share: ports just released, and a log that strangers cannot
 * flood.
 */
@NullMarked
package dev.tutti.store.net;

import org.jspecify.annotations.NullMarked;
