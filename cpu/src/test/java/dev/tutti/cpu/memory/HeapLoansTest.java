package dev.tutti.cpu.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class HeapLoansTest {
  private final HeapLoans<String> loans = new HeapLoans<>();

  @Test
  void withoutALoanAllComesBackAtOnce() {
    assertThat(loans.free("a")).containsExactly("a");
    loans.end(loans.begin());
    assertThat(loans.free("b")).containsExactly("b");
  }

  @Test
  void whatIsFreedWaitsForTheLoansThatWereOpen() {
    int first = loans.begin();
    int second = loans.begin();
    assertThat(loans.free("a")).isEmpty();
    assertThat(loans.free("b")).isEmpty();
    assertThat(loans.end(second)).isEmpty();
    assertThat(loans.end(first)).containsExactlyInAnyOrder("a", "b");
  }

  @Test
  void laterLoansAreNotWaitedFor() {
    int first = loans.begin();
    assertThat(loans.free("a")).isEmpty();
    int second = loans.begin();
    assertThat(loans.end(first)).containsExactly("a");
    assertThat(loans.free("b")).isEmpty();
    int third = loans.begin();
    assertThat(loans.end(second)).containsExactly("b");
    assertThat(loans.end(third)).isEmpty();
  }

  @Test
  void whatIsFreedWhileOlderThingsDrainWaitsForItsOwnLoans() {
    int first = loans.begin();
    assertThat(loans.free("a")).isEmpty();
    int second = loans.begin();
    assertThat(loans.free("b")).isEmpty();
    assertThat(loans.end(second)).isEmpty();
    List<String> unread = loans.end(first);
    assertThat(unread).containsExactlyInAnyOrder("a", "b");
    assertThat(loans.free("c")).containsExactly("c");
  }

  @Test
  void thereIsAlwaysALoanAndAllComesBack() {
    int open = loans.begin();
    int back = 0;
    for (int i = 0; i < 1000; i++) {
      back += loans.free("x").size();
      int next = loans.begin();
      back += loans.end(open).size();
      open = next;
      assertThat(back).isGreaterThanOrEqualTo(i - 1);
    }
    assertThat(back + loans.end(open).size()).isEqualTo(1000);
  }
}
