/**
 * The Gloo backend: its provider, and what a group of it is made of.
 *
 * <p>Programs name it, or get it where nothing else is named; its settings are constants of {@link
 * dev.tutti.gloo.GlooProvider}.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="gloo"}
 *
 * <p>All packages below use these words. A <em>part</em> is what one rank contributes, reduces or
 * gets of the tensor of a collective. A <em>piece</em> is as much of a part, or of a tensor that is
 * worked on bit by bit, as one step handles. A <em>segment</em> is as much of a part as one message
 * carries between hosts. Within a host, a <em>chunk</em> is as much as fits into a <em>stage</em>,
 * which is the memory that a rank fills for the others to read, and a rank has a few of; a
 * <em>slot</em> there is the memory of a rank for one short operation. In the transport, as in
 * Gloo, a slot is the number by which the messages of an operation are told from those of others.
 */
@NullMarked
package dev.tutti.gloo;

import org.jspecify.annotations.NullMarked;
