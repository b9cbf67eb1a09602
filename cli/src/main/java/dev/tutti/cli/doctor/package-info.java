/** The command doctor: checks what this host and its settings allow. */
@NullMarked
package dev.tutti.cli.doctor;

import org.jspecify.annotations.NullMarked;
