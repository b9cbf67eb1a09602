/**
 * The Gloo backend: its provider, and the parts of a group.
 *
 * <p>Programs select it by name, or get it if they name no backend; its settings are constants of
 * {@link dev.tutti.gloo.GlooProvider}.
 *
 * {@snippet file="DeviceSnippetsTest.java" region="gloo"}
 *
 * <p>All packages below use the following terms. A <em>part</em> is the share of a collective's
 * tensor that one rank contributes, reduces or receives. A <em>piece</em> is the amount of a part,
 * or of a tensor that is processed step by step, that one step handles. A <em>segment</em> is the
 * amount of a part that one message carries between hosts. Within a host, a <em>chunk</em> is the
 * amount that fits into a <em>stage</em>, the memory that a rank fills for the others to read; each
 * rank has a few stages; a <em>slot</em> is the memory of a rank for one short operation. In the
 * transport, as in Gloo, a slot is the number that distinguishes the messages of one operation from
 * those of others.
 */
@NullMarked
package dev.tutti.gloo;

import org.jspecify.annotations.NullMarked;
