/**
 * JUnit tests that run on every rank of a world. Begin with {@link dev.tutti.testing.World}:
 *
 * {@snippet file="WorldSnippetsTest.java" region="world"}
 */
@NullMarked
package dev.tutti.testing;

import org.jspecify.annotations.NullMarked;
