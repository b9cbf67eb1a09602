package dev.tutti.examples.digits;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.zip.GZIPInputStream;

/**
 * Handwritten digits: 1797 images of 8 by 8 pixels, about 180 of each digit.
 *
 * <p>The data is the test part of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C.
 * Kaynak, UCI Machine Learning Repository, 1998 (doi 10.24432/C50P49), licensed CC BY 4.0. Each
 * line has 64 counts of dark pixels, from 0 to 16, and the digit.
 *
 * @param training the images to learn from
 * @param test the images that are never used for training
 */
public record Digits(List<Image> training, List<Image> test) {
  /** The number of pixels in an image. */
  public static final int PIXELS = 64;

  /** The number of digits. */
  public static final int CLASSES = 10;

  private static final int TEST_IMAGES = 360;
  private static final long SPLIT_SEED = 1998;

  /** One handwritten digit. */
  public static final class Image {
    private final float[] pixels;
    private final int digit;

    Image(float[] pixels, int digit) {
      this.pixels = pixels;
      this.digit = digit;
    }

    /** Returns the darkness of each pixel, from 0 to 1, row by row. */
    public float[] pixels() {
      return pixels;
    }

    /** Returns the digit that the writer meant. */
    public int digit() {
      return digit;
    }
  }

  /**
   * Reads the images and splits them, always in the same way.
   *
   * @throws IOException if the file is missing or damaged
   */
  public static Digits load() throws IOException {
    List<Image> images = new ArrayList<>();
    try (InputStream resource = Digits.class.getResourceAsStream("digits.csv.gz")) {
      if (resource == null) {
        throw new IOException("digits.csv.gz is not next to " + Digits.class);
      }
      BufferedReader reader =
          new BufferedReader(new InputStreamReader(new GZIPInputStream(resource), US_ASCII));
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        images.add(parse(line));
      }
    }
    Collections.shuffle(images, new Random(SPLIT_SEED));
    return new Digits(
        List.copyOf(images.subList(TEST_IMAGES, images.size())),
        List.copyOf(images.subList(0, TEST_IMAGES)));
  }

  private static Image parse(String line) throws IOException {
    String[] numbers = line.split(",", -1);
    if (numbers.length != PIXELS + 1) {
      throw new IOException("expected " + (PIXELS + 1) + " numbers in '" + line + "'");
    }
    float[] pixels = new float[PIXELS];
    for (int i = 0; i < PIXELS; i++) {
      pixels[i] = Integer.parseInt(numbers[i]) / 16f;
    }
    return new Image(pixels, Integer.parseInt(numbers[PIXELS]));
  }
}
