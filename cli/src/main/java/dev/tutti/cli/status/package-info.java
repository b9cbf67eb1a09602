/** The command {@code tutti status}. */
@NullMarked
package dev.tutti.cli.status;

import org.jspecify.annotations.NullMarked;
