/**
 * What the ranks of a host share: descriptors, memory, and the information they exchange for that
 * purpose.
 */
@NullMarked
package dev.tutti.cuda.share;

import org.jspecify.annotations.NullMarked;
