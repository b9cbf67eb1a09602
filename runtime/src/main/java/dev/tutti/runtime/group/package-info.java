/**
 * A group of ranks as users see it: set-up, argument checks, calls, and the end.
 *
 * <p>All packages of the module use the following terms. A <em>job</em> is all ranks that meet at
 * one rendezvous, a <em>group</em> some of them. An <em>operation</em> is one call of a collective
 * or of a message, with a <em>sequence</em> number in its group. The <em>log of failures</em> is
 * the list of entries in the store that all ranks of the job read in the same order. An
 * <em>event</em> in it is a failure as the rank describes it that reports it. <em>Evidence</em> is
 * what a rank has about a failure when it judges it, and a <em>finding</em> what it concludes. The
 * first finding in the log is the <em>verdict</em>, which all ranks throw. A <em>generation</em> is
 * a group between two changes of the members.
 */
package dev.tutti.runtime.group;
