/** What a module implements whose tensors a Gloo group shall take. */
@NullMarked
package dev.tutti.gloo.spi;

import org.jspecify.annotations.NullMarked;
