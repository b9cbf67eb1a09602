/** The media driver that a client or a server uses, and how its threads wait. */
@NullMarked
package dev.tutti.aeron.driver;

import org.jspecify.annotations.NullMarked;
