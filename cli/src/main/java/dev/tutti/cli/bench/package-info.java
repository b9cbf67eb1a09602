/** The command bench, which measures collectives, and prints and plots the results. */
@NullMarked
package dev.tutti.cli.bench;

import org.jspecify.annotations.NullMarked;
