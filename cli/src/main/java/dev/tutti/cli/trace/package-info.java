/** The command {@code tutti trace}, which compares flight records and JFR files of all ranks. */
@NullMarked
package dev.tutti.cli.trace;

import org.jspecify.annotations.NullMarked;
