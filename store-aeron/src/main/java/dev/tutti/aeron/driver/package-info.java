/** The media driver of a client or a server, and how its threads wait. */
@NullMarked
package dev.tutti.aeron.driver;

import org.jspecify.annotations.NullMarked;
