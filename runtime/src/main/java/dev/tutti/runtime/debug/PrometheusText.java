package dev.tutti.runtime.debug;

/** Writes metrics in Prometheus' text format, version 0.0.4. */
final class PrometheusText {
  private final StringBuilder text = new StringBuilder(2048);
  private final String label;
  private final String labelValue;
  private String name = "";

  /**
   * Creates an empty text.
   *
   * @param label the label that all metrics have
   * @param labelValue the value of that label
   */
  PrometheusText(String label, String labelValue) {
    this.label = label;
    this.labelValue = labelValue;
  }

  /**
   * Begins a metric.
   *
   * @param type counter or gauge
   * @param help what the metric counts, on one line
   */
  void begin(String newName, String type, String help) {
    name = newName;
    text.append("# HELP ").append(name).append(' ').append(help).append('\n');
    text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
  }

  /**
   * Adds a sample of the current metric.
   *
   * @param labels label names and values, alternating
   */
  void add(double value, String... labels) {
    text.append(name).append('{');
    append(label, labelValue);
    for (int i = 0; i < labels.length; i += 2) {
      text.append(',');
      append(labels[i], labels[i + 1]);
    }
    text.append("} ");
    if (value == (long) value) {
      text.append((long) value);
    } else {
      text.append(value);
    }
    text.append('\n');
  }

  private void append(String key, String value) {
    text.append(key).append("=\"");
    text.append(value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n"));
    text.append('"');
  }

  @Override
  public String toString() {
    return text.toString();
  }
}
