/** The command run: starts the ranks of a job, watches them, and reports why they failed. */
@NullMarked
package dev.tutti.cli.run;

import org.jspecify.annotations.NullMarked;
