/** What is known about the ranks of a job, and who is to blame: the model of all its views. */
@NullMarked
package dev.tutti.runtime.view;

import org.jspecify.annotations.NullMarked;
