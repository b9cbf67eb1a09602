/**
 * The backend cuda: collectives and messages by kernels, through the memory that the ranks of a
 * host share.
 */
@NullMarked
package dev.tutti.cuda.collective;

import org.jspecify.annotations.NullMarked;
