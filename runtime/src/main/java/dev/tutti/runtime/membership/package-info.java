/** How the members of a job agree who continues: generations that shrink, grow and rejoin. */
package dev.tutti.runtime.membership;
