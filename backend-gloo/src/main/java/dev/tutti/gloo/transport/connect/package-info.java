/** The data that two ranks exchange and prove to each other before they exchange messages. */
package dev.tutti.gloo.transport.connect;
