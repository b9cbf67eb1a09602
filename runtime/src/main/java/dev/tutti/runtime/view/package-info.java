/** What is known about the ranks of a job, and who is to blame: the model of all its views. */
package dev.tutti.runtime.view;
