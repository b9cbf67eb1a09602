/**
 * The command run, which starts the ranks of a job, supervises them, and reports why they failed.
 */
@NullMarked
package dev.tutti.cli.run;

import org.jspecify.annotations.NullMarked;
