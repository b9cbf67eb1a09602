/**
 * The calls of the file system that checkpoints use, so that tests can lose what was not forced.
 */
package dev.tutti.checkpoint.disk;
