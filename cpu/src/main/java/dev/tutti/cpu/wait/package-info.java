/** Waits that the system or an interrupt ends. */
@NullMarked
package dev.tutti.cpu.wait;

import org.jspecify.annotations.NullMarked;
