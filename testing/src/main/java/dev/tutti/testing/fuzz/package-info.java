/**
 * Tests that run random programs on a backend and compare all results.
 *
 * <p>Begin with {@link dev.tutti.testing.fuzz.FuzzContract}, which a test class implements:
 *
 * {@snippet file="fuzz/ThreadedProgramsTest.java" region="suite"}
 */
@NullMarked
package dev.tutti.testing.fuzz;

import org.jspecify.annotations.NullMarked;
