/**
 * JUnit support for distributed code, and the contract suites for backends, stores and stream
 * blocks. Suites may grow in a minor release.
 *
 * <p>Begin with {@link dev.tutti.testing.World}, which runs a test method on every rank. To test a
 * backend or a store, extend {@link dev.tutti.testing.ProcessGroupContract} or {@link
 * dev.tutti.testing.StoreContract}.
 *
 * {@snippet file="WorldSnippetsTest.java" region="world"}
 */
@NullMarked
package dev.tutti.testing;

import org.jspecify.annotations.NullMarked;
