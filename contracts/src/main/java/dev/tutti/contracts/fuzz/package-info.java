/**
 * Tests that run random programs on a backend and compare all results.
 *
 * <p>Begin with {@link dev.tutti.contracts.fuzz.FuzzContract}, which a test class implements:
 *
 * {@snippet file="fuzz/ThreadedProgramsTest.java" region="suite"}
 */
@NullMarked
package dev.tutti.contracts.fuzz;

import org.jspecify.annotations.NullMarked;
