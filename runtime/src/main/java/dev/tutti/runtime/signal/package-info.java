/** Signals that processes receive from outside. */
package dev.tutti.runtime.signal;
