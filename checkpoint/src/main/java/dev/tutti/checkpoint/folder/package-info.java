/** The folder of a job's checkpoints, and how files in it are written and read with checksums. */
package dev.tutti.checkpoint.folder;
