/**
 * The calls of the file system that checkpoints use, so that tests can lose what was not forced.
 */
@NullMarked
package dev.tutti.checkpoint.disk;

import org.jspecify.annotations.NullMarked;
