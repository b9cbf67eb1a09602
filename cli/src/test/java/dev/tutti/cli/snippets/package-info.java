/** Examples that the Javadoc of published modules shows; the tests run what needs no GPU. */
package dev.tutti.cli.snippets;
