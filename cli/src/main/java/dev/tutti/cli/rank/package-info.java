/** The processes of ranks, with all that they start, and what they print. */
package dev.tutti.cli.rank;
