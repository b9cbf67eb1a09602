/** The command {@code tutti trace}: flight records and JFR files of all ranks, side by side. */
@NullMarked
package dev.tutti.cli.trace;

import org.jspecify.annotations.NullMarked;
