/** The command {@code tutti token}. */
package dev.tutti.cli.token;
