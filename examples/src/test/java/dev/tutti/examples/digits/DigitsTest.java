package dev.tutti.examples.digits;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.examples.digits.Digits.Image;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class DigitsTest {
  @Test
  void imagesAreReadAndSplit() throws Exception {
    Digits digits = Digits.load();
    assertThat(digits.training()).hasSize(1437);
    assertThat(digits.test()).hasSize(360);
    Set<List<Object>> training = new HashSet<>();
    digits.training().forEach(image -> training.add(content(image)));
    assertThat(digits.test()).noneMatch(image -> training.contains(content(image)));
    List<Image> all = new ArrayList<>(digits.training());
    all.addAll(digits.test());
    int[] counts = new int[10];
    for (Image image : all) {
      counts[image.digit()]++;
      for (float pixel : image.pixels()) {
        assertThat(pixel).isBetween(0f, 1f);
      }
    }
    assertThat(counts).containsExactly(178, 182, 177, 183, 181, 182, 181, 179, 174, 180);
  }

  private static List<Object> content(Image image) {
    List<Object> content = new ArrayList<>();
    for (float pixel : image.pixels()) {
      content.add(pixel);
    }
    return content;
  }
}
