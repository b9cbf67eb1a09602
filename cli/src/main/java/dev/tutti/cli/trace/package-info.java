/** The command {@code tutti trace}, which compares flight records and JFR files of all ranks. */
package dev.tutti.cli.trace;
