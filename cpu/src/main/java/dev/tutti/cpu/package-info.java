/**
 * The parts that backends for CPU tensors share. Programs do not need them.
 *
 * <p>Begin with {@link dev.tutti.cpu.HostReducer}, which reduces memory, and {@link
 * dev.tutti.cpu.SparseSum}, which adds sparse tensors.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="reduce"}
 */
@NullMarked
package dev.tutti.cpu;

import org.jspecify.annotations.NullMarked;
