/** How ranks meet at a store, and what they agree on there. */
package dev.tutti.runtime.rendezvous;
