/** How ranks meet at a store, and what they agree on there. */
@NullMarked
package dev.tutti.runtime.rendezvous;

import org.jspecify.annotations.NullMarked;
