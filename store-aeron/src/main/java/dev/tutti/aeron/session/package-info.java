/** A client's connection with a server, and the calls that wait for its replies. */
@NullMarked
package dev.tutti.aeron.session;

import org.jspecify.annotations.NullMarked;
