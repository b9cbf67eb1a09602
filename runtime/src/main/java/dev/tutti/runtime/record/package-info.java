/** Files of records: JSON and pickle, written from plain maps, lists, texts and numbers. */
@NullMarked
package dev.tutti.runtime.record;

import org.jspecify.annotations.NullMarked;
