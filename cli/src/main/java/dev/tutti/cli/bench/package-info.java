/** The command bench: measures collectives and stores, and prints and draws the results. */
@NullMarked
package dev.tutti.cli.bench;

import org.jspecify.annotations.NullMarked;
