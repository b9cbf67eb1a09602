/**
 * Holds what backends, stores and devices implement, and what helps them to. What a minor release
 * adds to an interface that others implement has a default; {@link dev.tutti.spi.Operation} is
 * implemented by Tutti alone.
 *
 * <p>Begin with {@link dev.tutti.spi.BackendProvider}, which makes a {@link dev.tutti.spi.Backend}
 * for each group, or with {@link dev.tutti.spi.StoreProvider}. Providers are found by {@link
 * java.util.ServiceLoader}, or named by the program:
 *
 * {@snippet file="GroupSnippetsTest.java" region="provider"}
 */
@NullMarked
package dev.tutti.spi;

import org.jspecify.annotations.NullMarked;
