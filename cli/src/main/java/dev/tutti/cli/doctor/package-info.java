/** The command doctor, which checks what this host and its settings allow. */
@NullMarked
package dev.tutti.cli.doctor;

import org.jspecify.annotations.NullMarked;
