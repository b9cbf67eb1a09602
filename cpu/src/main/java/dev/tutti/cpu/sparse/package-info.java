/**
 * The steps of summing sparse tensors.
 *
 * <p>An <em>entry</em> is one column of a tensor's indices, with its <em>row</em> of values. The
 * <em>key</em> of an entry is the number of its <em>place</em>, where the rows of several entries
 * are added.
 */
package dev.tutti.cpu.sparse;
