/** The command store, which serves a store for the ranks of a job. */
@NullMarked
package dev.tutti.cli.store;

import org.jspecify.annotations.NullMarked;
