/** The sockets of store servers, as far as the servers share them. */
@NullMarked
package dev.tutti.store.net;

import org.jspecify.annotations.NullMarked;
