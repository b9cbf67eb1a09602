/**
 * The data that ranks exchange and prove to each other before they exchange messages, and which
 * peers cannot be reached.
 */
package dev.tutti.gloo.transport.connect;
