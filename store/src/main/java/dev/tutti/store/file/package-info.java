/** The store in a file that all ranks can open. */
@NullMarked
package dev.tutti.store.file;

import org.jspecify.annotations.NullMarked;
