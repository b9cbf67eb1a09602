/** The command that shows and checks checkpoints. */
package dev.tutti.cli.checkpoint;
