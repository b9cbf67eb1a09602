/** The command {@code tutti status}. */
package dev.tutti.cli.status;
