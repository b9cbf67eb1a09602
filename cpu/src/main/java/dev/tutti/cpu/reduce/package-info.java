/** The loops of reductions, with vector instructions if the CPU has them. */
@NullMarked
package dev.tutti.cpu.reduce;

import org.jspecify.annotations.NullMarked;
