/** What commands share about processes: signals, the terminal, and how they end. */
package dev.tutti.cli.process;
