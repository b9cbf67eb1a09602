/** Holds other ways to reduce a bucket of gradients: with fewer bytes, or slowly on purpose. */
@NullMarked
package dev.tutti.gradients.hook;

import org.jspecify.annotations.NullMarked;
