/** Access to the memory of other processes on the host (cross memory attach). */
@NullMarked
package dev.tutti.gloo.transport.cma;

import org.jspecify.annotations.NullMarked;
