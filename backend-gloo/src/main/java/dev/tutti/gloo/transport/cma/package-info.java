/** Reads and writes the memory of other processes of the host (cross memory attach). */
@NullMarked
package dev.tutti.gloo.transport.cma;

import org.jspecify.annotations.NullMarked;
