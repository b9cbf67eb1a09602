/**
 * What the ranks of a host share: descriptors, memory, and the information they exchange for that
 * purpose.
 */
package dev.tutti.cuda.share;
