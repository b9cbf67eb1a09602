/** The loops of reductions, with vector instructions if the CPU has them. */
package dev.tutti.cpu.reduce;
