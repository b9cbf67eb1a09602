/** The bytes that clients and servers exchange: the handshake, frames and bodies. */
package dev.tutti.aeron.wire;
