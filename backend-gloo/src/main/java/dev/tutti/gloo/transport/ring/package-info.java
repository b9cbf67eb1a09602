/** Byte rings in shared memory, through which two processes of a host communicate. */
package dev.tutti.gloo.transport.ring;
