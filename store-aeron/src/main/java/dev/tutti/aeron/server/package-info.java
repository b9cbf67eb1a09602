/**
 * The server that keeps the store: its thread, its clients, and the requests that it carries out
 * for them.
 */
@NullMarked
package dev.tutti.aeron.server;

import org.jspecify.annotations.NullMarked;
