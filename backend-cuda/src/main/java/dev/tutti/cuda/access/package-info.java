/**
 * The parts of devices, streams and events that the public classes hide from users, and what runs
 * when the JVM shuts down.
 */
package dev.tutti.cuda.access;
