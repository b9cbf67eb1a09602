/**
 * Holds what backends, stores and devices implement, and what helps them to. What a minor release
 * adds to an interface that others implement has a default; {@link dev.tutti.spi.Operation} is
 * implemented by Tutti alone.
 */
@NullMarked
package dev.tutti.spi;

import org.jspecify.annotations.NullMarked;
