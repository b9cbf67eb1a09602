/** The operations of a group: their order, states, deadlines and records. */
package dev.tutti.runtime.operation;
