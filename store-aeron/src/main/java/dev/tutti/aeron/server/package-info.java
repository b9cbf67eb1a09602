/** The server that keeps the store: its thread, its clients, and what it does for them. */
@NullMarked
package dev.tutti.aeron.server;

import org.jspecify.annotations.NullMarked;
