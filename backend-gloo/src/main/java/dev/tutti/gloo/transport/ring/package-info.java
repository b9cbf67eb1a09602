/** Byte rings in shared memory, through which two processes of a host communicate. */
@NullMarked
package dev.tutti.gloo.transport.ring;

import org.jspecify.annotations.NullMarked;
