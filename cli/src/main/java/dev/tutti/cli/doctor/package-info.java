/** The command doctor, which checks what this host and its settings allow. */
package dev.tutti.cli.doctor;
