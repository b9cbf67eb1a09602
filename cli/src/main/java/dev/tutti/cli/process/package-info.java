/** What commands share about processes: signals, the terminal, and how they end. */
@NullMarked
package dev.tutti.cli.process;

import org.jspecify.annotations.NullMarked;
