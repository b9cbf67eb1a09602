/** Record files: JSON and pickle, written from plain maps, lists, strings and numbers. */
@NullMarked
package dev.tutti.runtime.record;

import org.jspecify.annotations.NullMarked;
