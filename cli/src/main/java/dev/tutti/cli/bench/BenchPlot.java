package dev.tutti.cli.bench;

import de.erichseifert.vectorgraphics2d.VectorGraphics2D;
import de.erichseifert.vectorgraphics2d.svg.SVGProcessor;
import de.erichseifert.vectorgraphics2d.util.PageSize;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Reasons;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.Rectangle;
import java.awt.RenderingHints;
import java.awt.geom.Ellipse2D;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.text.FieldPosition;
import java.text.NumberFormat;
import java.text.ParsePosition;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import javax.imageio.ImageIO;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.LogarithmicAxis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.NumberTickUnit;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.RectangleEdge;
import org.jfree.chart.ui.RectangleInsets;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/**
 * A plot of time and bus bandwidth over size as an SVG or PNG picture; needs fonts but no display.
 */
final class BenchPlot {
  private static final int WIDTH = 640;
  private static final int HEIGHT = 480;
  private static final int MARGIN = 8;
  private static final int LINE = 16;

  /** The PNG pixels per unit of length, so that the picture is sharp on modern screens. */
  private static final int SCALE = 2;

  private static final Font TITLE = new Font(Font.SANS_SERIF, Font.BOLD, 14);

  /** Not of 12 points, the size that VectorGraphics2D leaves out, and viewers draw as 16. */
  private static final Font SMALL = new Font(Font.SANS_SERIF, Font.PLAIN, 11);

  private static final String NOTHING = "there is nothing to plot: no operation has sizes";

  /** Colors that people with color blindness can distinguish (Okabe and Ito, 2008). */
  private static final Color[] COLORS = {
    new Color(0x0072B2),
    new Color(0xD55E00),
    new Color(0x009E73),
    new Color(0xCC79A7),
    new Color(0xE69F00),
    new Color(0x56B4E9),
    new Color(0x000000),
    new Color(0xB8A800),
    new Color(0x7F7F7F),
  };

  private BenchPlot() {}

  /**
   * Checks that a picture can be drawn, before much time is spent on measuring its content.
   *
   * @param file the file to be written
   * @param ops the operations to be measured
   * @throws LaunchException describing what is missing
   * @throws IllegalArgumentException if there will be nothing to draw
   */
  static void check(Path file, List<BenchOp> ops) {
    if (ops.stream().noneMatch(BenchOp::hasSizes)) {
      throw new IllegalArgumentException(NOTHING);
    }
    boolean known = isPng(file) || file.toString().toLowerCase(Locale.ROOT).endsWith(".svg");
    if (!known && !Files.exists(file)) {
      throw new IllegalArgumentException("--plot must end in .svg or .png: " + file);
    }
    Path directory = file.toAbsolutePath().getParent();
    if (directory == null || !Files.isDirectory(directory)) {
      throw new IllegalArgumentException("--plot " + file + ": no such folder");
    }
    boolean exists = Files.exists(file);
    try {
      Files.newOutputStream(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND).close();
      if (!exists) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw unwritable(e);
    }
    System.setProperty("java.awt.headless", "true");
    try {
      BufferedImage image = new BufferedImage(1, 1, BufferedImage.TYPE_INT_RGB);
      image.createGraphics().getFontMetrics().stringWidth("x");
    } catch (LinkageError | InternalError e) {
      throw new LaunchException(
          1,
          "Java cannot draw text here: install fontconfig and a font, such as fonts-dejavu-core,"
              + " or leave --plot out ("
              + e
              + ")",
          e);
    }
  }

  /**
   * Writes the picture.
   *
   * @param rows the results; those without a size are omitted
   * @param file the file to write, as PNG if its name ends in .png, otherwise as SVG
   * @param origin the line that says where the numbers come from
   * @throws LaunchException if the picture cannot be written
   * @throws IllegalArgumentException if there is nothing to draw
   */
  static void write(List<BenchRow> rows, Path file, String origin) {
    // Otherwise the axis labels become outlines instead of text.
    TextUtils.setUseDrawRotatedStringWorkaround(false);
    Map<String, List<BenchRow>> byOp = new LinkedHashMap<>();
    for (BenchRow row : rows) {
      if (row.bytes() > 0 && row.p50() > 0) {
        byOp.computeIfAbsent(row.op(), _ -> new ArrayList<>()).add(row);
      }
    }
    if (byOp.isEmpty()) {
      throw new IllegalArgumentException(NOTHING);
    }
    BenchRow any = byOp.values().iterator().next().getFirst();
    String what =
        " (" + any.backend() + ", " + Counts.of(any.ranks(), "rank") + ", " + any.dtype() + ")";
    Panel time = new Panel("Time" + what, "microseconds");
    Panel bandwidth = new Panel("Bus bandwidth" + what, "GB/s");
    int color = 0;
    for (Map.Entry<String, List<BenchRow>> entry : byOp.entrySet()) {
      Color ink = COLORS[color++ % COLORS.length];
      String op = entry.getKey();
      time.add(op + " p50", entry.getValue(), BenchRow::p50, ink, Optional.empty());
      time.add(op + " p99", entry.getValue(), BenchRow::p99, ink, Optional.of(new float[] {5, 4}));
      bandwidth.add(op, entry.getValue(), BenchRow::busBandwidth, ink, Optional.empty());
    }
    List<String> foot = wrap(origin, 2 * WIDTH - 2 * MARGIN);
    int height = HEIGHT + foot.size() * LINE + MARGIN;
    Consumer<Graphics2D> painter =
        graphics -> {
          graphics.setPaint(Color.WHITE);
          graphics.fillRect(0, 0, 2 * WIDTH, height);
          time.chart().draw(graphics, new Rectangle(0, 0, WIDTH, HEIGHT));
          bandwidth.chart().draw(graphics, new Rectangle(WIDTH, 0, WIDTH, HEIGHT));
          graphics.setPaint(Color.DARK_GRAY);
          graphics.setFont(SMALL);
          for (int line = 0; line < foot.size(); line++) {
            graphics.drawString(foot.get(line), MARGIN, HEIGHT + (line + 1) * LINE - MARGIN / 2);
          }
        };
    try {
      Files.write(file, isPng(file) ? png(painter, height) : svg(painter, height));
    } catch (IOException e) {
      throw unwritable(e);
    }
  }

  private static boolean isPng(Path file) {
    return file.toString().toLowerCase(Locale.ROOT).endsWith(".png");
  }

  /** Breaks a text between words into lines of at most the given width; a longer word is split. */
  private static List<String> wrap(String text, int width) {
    FontMetrics metrics =
        new BufferedImage(1, 1, BufferedImage.TYPE_INT_RGB).createGraphics().getFontMetrics(SMALL);
    List<String> lines = new ArrayList<>();
    String rest = text;
    while (metrics.stringWidth(rest) > width) {
      int fits = rest.length() - 1;
      while (fits > 1 && metrics.stringWidth(rest.substring(0, fits)) > width) {
        fits--;
      }
      int space = rest.lastIndexOf(' ', fits);
      int end = space > 0 ? space : fits;
      lines.add(rest.substring(0, end));
      rest = rest.substring(end).strip();
    }
    lines.add(rest);
    return lines;
  }

  private static byte[] svg(Consumer<Graphics2D> painter, int height) throws IOException {
    VectorGraphics2D graphics = new VectorGraphics2D();
    painter.accept(graphics);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    new SVGProcessor()
        .getDocument(graphics.getCommands(), new PageSize(2 * WIDTH, height))
        .writeTo(out);
    return out.toByteArray();
  }

  private static byte[] png(Consumer<Graphics2D> painter, int height) throws IOException {
    BufferedImage image =
        new BufferedImage(SCALE * 2 * WIDTH, SCALE * height, BufferedImage.TYPE_INT_RGB);
    Graphics2D graphics = image.createGraphics();
    try {
      graphics.scale(SCALE, SCALE);
      graphics.setRenderingHint(
          RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
      painter.accept(graphics);
    } finally {
      graphics.dispose();
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ImageIO.write(image, "png", out);
    return out.toByteArray();
  }

  private static LaunchException unwritable(IOException failure) {
    return new LaunchException(1, "cannot write the plot: " + Reasons.of(failure), failure);
  }

  /** One of the two charts. */
  private static final class Panel {
    private final String title;
    private final String unit;
    private final XYSeriesCollection data = new XYSeriesCollection();
    private final XYLineAndShapeRenderer renderer = new XYLineAndShapeRenderer(true, false);

    Panel(String title, String unit) {
      this.title = title;
      this.unit = unit;
    }

    void add(
        String name,
        List<BenchRow> rows,
        ToDoubleFunction<BenchRow> value,
        Color color,
        Optional<float[]> dashes) {
      XYSeries series = new XYSeries(name);
      for (BenchRow row : rows) {
        series.add(Math.log((double) row.bytes()) / Math.log(2), value.applyAsDouble(row));
      }
      int index = data.getSeriesCount();
      data.addSeries(series);
      renderer.setSeriesPaint(index, color);
      renderer.setSeriesShape(index, new Ellipse2D.Double(-2.5, -2.5, 5, 5));
      renderer.setSeriesShapesVisible(index, dashes.isEmpty());
      renderer.setSeriesStroke(
          index,
          dashes
              .map(d -> new BasicStroke(1, BasicStroke.CAP_BUTT, BasicStroke.JOIN_BEVEL, 1, d, 0))
              .orElseGet(() -> new BasicStroke(1.5f)));
    }

    JFreeChart chart() {
      NumberAxis size = new NumberAxis("size");
      size.setAutoRangeIncludesZero(false);
      size.setTickUnit(new NumberTickUnit(4));
      size.setNumberFormatOverride(new PowerOfTwo());
      LogarithmicAxis value = new LogarithmicAxis(unit);
      value.setStrictValuesFlag(false);
      size.setLabelFont(SMALL);
      value.setLabelFont(SMALL);
      XYPlot plot = new XYPlot(data, size, value, renderer);
      plot.setBackgroundPaint(Color.WHITE);
      plot.setDomainGridlinePaint(Color.LIGHT_GRAY);
      plot.setRangeGridlinePaint(Color.LIGHT_GRAY);
      JFreeChart chart = new JFreeChart(title, TITLE, plot, true);
      chart.setBackgroundPaint(Color.WHITE);
      // One name a line: viewers of SVG draw them in fonts of other widths than those measured
      // here.
      chart.getLegend().setPosition(RectangleEdge.RIGHT);
      chart.getLegend().setItemFont(SMALL);
      chart.setPadding(new RectangleInsets(MARGIN, MARGIN, MARGIN, 2 * MARGIN));
      return chart;
    }
  }

  /** A format that writes 14 as "16 KiB". */
  private static final class PowerOfTwo extends NumberFormat {
    private static final long serialVersionUID = 1L;
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

    @Override
    public StringBuffer format(double exponent, StringBuffer target, FieldPosition position) {
      int unit = Math.clamp((long) (exponent / 10), 0, UNITS.length - 1);
      long number = Math.round(Math.pow(2, exponent - 10 * unit));
      return target.append(number).append(' ').append(UNITS[unit]);
    }

    @Override
    public StringBuffer format(long exponent, StringBuffer target, FieldPosition position) {
      return format((double) exponent, target, position);
    }

    @Override
    public Number parse(String text, ParsePosition position) {
      throw new UnsupportedOperationException("only writes");
    }
  }
}
