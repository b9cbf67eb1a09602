/** The bytes that clients and servers exchange: the handshake, frames and bodies. */
@NullMarked
package dev.tutti.aeron.wire;

import org.jspecify.annotations.NullMarked;
