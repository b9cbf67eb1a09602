/** The data that two ranks exchange and prove to each other before they exchange messages. */
@NullMarked
package dev.tutti.gloo.transport.connect;

import org.jspecify.annotations.NullMarked;
