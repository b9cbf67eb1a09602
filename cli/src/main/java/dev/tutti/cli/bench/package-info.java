/** The command bench, which measures collectives, and prints and plots the results. */
package dev.tutti.cli.bench;
