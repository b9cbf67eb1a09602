/** A client's connection to a server, and the calls that wait for its replies. */
@NullMarked
package dev.tutti.aeron.session;

import org.jspecify.annotations.NullMarked;
