/** What the module has on a device, and the door to what users' classes keep from them. */
@NullMarked
package dev.tutti.cuda.access;

import org.jspecify.annotations.NullMarked;
