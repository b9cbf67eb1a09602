/** The loops of reductions, by vector instructions where the CPU has them. */
@NullMarked
package dev.tutti.cpu.reduce;

import org.jspecify.annotations.NullMarked;
