/** Data-parallel training of models of the Deep Java Library. */
@NullMarked
package dev.tutti.djl;

import org.jspecify.annotations.NullMarked;
