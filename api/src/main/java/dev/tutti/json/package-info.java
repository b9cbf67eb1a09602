/** JSON as plain values, for modules of Tutti only. */
package dev.tutti.json;
