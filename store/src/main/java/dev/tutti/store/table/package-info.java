/** The parts that all stores share: the table of keys, argument checks, memory limits and waits. */
package dev.tutti.store.table;
