/** Record files: JSON and pickle, written from plain maps, lists, strings and numbers. */
package dev.tutti.runtime.record;
