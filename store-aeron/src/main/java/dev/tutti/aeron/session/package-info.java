/** A client's connection to a server, and the calls that wait for its replies. */
package dev.tutti.aeron.session;
