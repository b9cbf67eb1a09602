/** Holds what Tutti's own stores share: the table of keys, and the checks and words of calls. */
package dev.tutti.store.internal;
