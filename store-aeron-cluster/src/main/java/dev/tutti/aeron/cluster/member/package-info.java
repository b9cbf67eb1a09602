/** The members of a cluster, which keep the store together, and what they agree on with clients. */
package dev.tutti.aeron.cluster.member;
