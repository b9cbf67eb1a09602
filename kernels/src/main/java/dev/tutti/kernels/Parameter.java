package dev.tutti.kernels;

/**
 * One parameter of a kernel.
 *
 * @param name its name in the CUDA source
 * @param type the type of the value that the launcher passes
 */
public record Parameter(String name, ParameterType type) {}
