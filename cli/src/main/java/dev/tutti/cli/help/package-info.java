/**
 * Help outside the program: shell completion and man pages, all generated from picocli's model of
 * the commands.
 */
package dev.tutti.cli.help;
