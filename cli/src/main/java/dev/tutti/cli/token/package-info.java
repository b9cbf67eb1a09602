/** The command {@code tutti token}. */
@NullMarked
package dev.tutti.cli.token;

import org.jspecify.annotations.NullMarked;
