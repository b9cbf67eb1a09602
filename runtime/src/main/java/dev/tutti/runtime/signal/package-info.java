/** Signals that processes receive from outside. */
@NullMarked
package dev.tutti.runtime.signal;

import org.jspecify.annotations.NullMarked;
