/**
 * What backends share that work on CPU tensors. Programs need none of it.
 *
 * <p>Begin with {@link dev.tutti.cpu.HostReducer}, which adds up memory, and {@link
 * dev.tutti.cpu.SparseSum}, which adds up sparse tensors.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="reduce"}
 */
@NullMarked
package dev.tutti.cpu;

import org.jspecify.annotations.NullMarked;
