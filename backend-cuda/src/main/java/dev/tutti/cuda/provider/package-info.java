/** The backends that the module offers to groups, and their sessions. */
package dev.tutti.cuda.provider;
