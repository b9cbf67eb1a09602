/** The media driver of a client or a server, and how its threads wait. */
package dev.tutti.aeron.driver;
