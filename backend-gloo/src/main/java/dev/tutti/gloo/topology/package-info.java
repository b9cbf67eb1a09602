/** Which ranks are on one host, and the words with which they find out. */
@NullMarked
package dev.tutti.gloo.topology;

import org.jspecify.annotations.NullMarked;
