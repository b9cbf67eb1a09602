/** Rings of bytes in shared memory, through which two processes of a host talk. */
@NullMarked
package dev.tutti.gloo.transport.ring;

import org.jspecify.annotations.NullMarked;
