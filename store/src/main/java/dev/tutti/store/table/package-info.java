/** The parts that all stores share: the table of keys, argument checks, memory limits and waits. */
@NullMarked
package dev.tutti.store.table;

import org.jspecify.annotations.NullMarked;
