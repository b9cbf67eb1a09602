/** The command store, which serves a store for the ranks of a job. */
package dev.tutti.cli.store;
