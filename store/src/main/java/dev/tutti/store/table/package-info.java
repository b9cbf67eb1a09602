/**
 * What all stores share: the table of keys, the checks of arguments, bounds of memory and waits.
 */
@NullMarked
package dev.tutti.store.table;

import org.jspecify.annotations.NullMarked;
