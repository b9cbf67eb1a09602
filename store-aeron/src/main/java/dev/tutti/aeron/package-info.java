/** Holds the store over Aeron: its client and its server. */
@NullMarked
package dev.tutti.aeron;

import org.jspecify.annotations.NullMarked;
