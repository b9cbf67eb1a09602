/**
 * The contract suites for backends, stores and stream blocks. Suites may grow in a minor release.
 *
 * <p>To test a backend or a store, extend {@link dev.tutti.contracts.ProcessGroupContract} or
 * {@link dev.tutti.contracts.StoreContract}.
 */
@NullMarked
package dev.tutti.contracts;

import org.jspecify.annotations.NullMarked;
