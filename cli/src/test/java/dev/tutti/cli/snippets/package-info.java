/** Examples that the Javadoc of published modules shows; the tests run those that need no GPU. */
package dev.tutti.cli.snippets;
