/** Copies, conversions and searches of elements on one device. */
@NullMarked
package dev.tutti.cuda.element;

import org.jspecify.annotations.NullMarked;
