/**
 * The server that keeps the store: its thread, its clients, and the requests that it carries out
 * for them.
 */
package dev.tutti.aeron.server;
