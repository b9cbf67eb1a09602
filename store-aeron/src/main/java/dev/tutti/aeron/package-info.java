/** Holds the store over Aeron: its client and its server. */
package dev.tutti.aeron;
