/** What a module implements whose tensors a Gloo group shall take. */
@Incubating
@NullMarked
package dev.tutti.gloo.spi;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
