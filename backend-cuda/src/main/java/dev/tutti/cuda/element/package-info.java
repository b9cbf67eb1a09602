/** Copies, conversions and searches of elements on one device. */
package dev.tutti.cuda.element;
