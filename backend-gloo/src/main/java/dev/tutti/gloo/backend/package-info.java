/** The backends that run the operations of a Gloo group, and what they share. */
package dev.tutti.gloo.backend;
