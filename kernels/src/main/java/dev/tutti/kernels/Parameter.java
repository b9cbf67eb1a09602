package dev.tutti.kernels;

/**
 * Describes one parameter of a kernel.
 *
 * @param name what the CUDA source calls it
 * @param type what the launcher passes
 */
public record Parameter(String name, ParameterType type) {}
