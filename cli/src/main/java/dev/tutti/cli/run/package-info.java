/**
 * The command run, which starts the ranks of a job, supervises them, and reports why they failed.
 *
 * <p>A <em>node</em> is one launcher with its ranks, usually a host. An <em>attempt</em> is one
 * start of all ranks; a restart begins the next one. A <em>proposal</em> is how an attempt ended on
 * one node, and the <em>verdict</em> the one that counts on all nodes.
 */
package dev.tutti.cli.run;
