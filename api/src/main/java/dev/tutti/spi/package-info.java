/**
 * The interfaces that backends, stores and devices implement, and classes that help to implement
 * them. Methods that a minor release adds to an interface that others implement have defaults; only
 * Tutti implements {@link dev.tutti.spi.Operation}.
 *
 * <p>Begin with {@link dev.tutti.spi.BackendProvider}, which creates a {@link
 * dev.tutti.spi.Backend} for each group, or with {@link dev.tutti.spi.StoreProvider}. Providers are
 * found by {@link java.util.ServiceLoader}, or set by the program:
 *
 * {@snippet file="GroupSnippetsTest.java" region="provider"}
 */
@NullMarked
package dev.tutti.spi;

import org.jspecify.annotations.NullMarked;
