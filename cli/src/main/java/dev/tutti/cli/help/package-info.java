/**
 * Help outside the program: completion for shells and man pages, all from picocli's model of the
 * commands.
 */
@NullMarked
package dev.tutti.cli.help;

import org.jspecify.annotations.NullMarked;
