/** How the ranks of a group agree on its first failure, and which rank they blame for it. */
package dev.tutti.runtime.failure;
