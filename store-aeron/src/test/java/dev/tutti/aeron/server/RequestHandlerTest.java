package dev.tutti.aeron.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.Protocol;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Tests what answers cost when no client receives them, or there is no memory for them. */
class RequestHandlerTest {
  private final RequestHandler commands = new RequestHandler();

  /** A caller that keeps the code and length of each reply. */
  private static class Asker extends Caller {
    final List<String> replies = new ArrayList<>();
    private final boolean heard;
    private final int most;

    Asker(boolean heard, int most) {
      this.heard = heard;
      this.most = most;
    }

    @Override
    public boolean isHeard() {
      return heard;
    }

    @Override
    public void reply(int code, long call, BodyWriter body) {
      if (code == Protocol.OK && body.length() > most) {
        throw new OutOfMemoryError("played");
      }
      replies.add(call + ": " + (code == Protocol.FAILED ? "failed" : body.length()));
    }

    @Override
    public void fail(long call, Throwable failure, BodyWriter body) {
      throw new AssertionError("this ends a member", failure);
    }
  }

  private void ask(Caller caller, int code, long call, Consumer<BodyWriter> request) {
    BodyWriter body = new BodyWriter();
    request.accept(body);
    commands.run(caller, code, call, new BodyReader().wrap(body.buffer(), 0, body.length()));
  }

  private void read(Caller caller) {
    ask(
        caller,
        Protocol.FETCH,
        1,
        body -> {
          body.putByte(0);
          body.putTexts(List.of("later"));
        });
    commands.table().set("key", new byte[1000]);
    ask(
        caller,
        Protocol.FETCH,
        2,
        body -> {
          body.putByte(0);
          body.putTexts(List.of("key"));
        });
    ask(caller, Protocol.LIST, 3, body -> {});
    commands.table().set("later", new byte[2000]);
  }

  @Test
  void answersThatNobodyGetsAreNotBuilt() {
    Asker asker = new Asker(false, Integer.MAX_VALUE);
    read(asker);
    assertThat(asker.replies).containsExactly("2: 0", "3: 0", "1: 0");
  }

  @Test
  void aReadForWhichThereIsNoMemoryFailsAlone() {
    Asker asker = new Asker(true, 5);
    read(asker);
    assertThat(asker.replies).containsExactly("2: failed", "3: failed", "1: failed");
    Asker other = new Asker(true, Integer.MAX_VALUE);
    ask(other, Protocol.LIST, 4, body -> {});
    assertThat(other.replies).containsExactly("4: " + (4 + 4 + 3 + 4 + 5));
  }

  @Test
  void willsArePublishedThoughTheTableIsFull() {
    RequestHandler full = new RequestHandler(2000, Protocol.MAX_BODY_BYTES);
    full.table().set("key", new byte[800]);
    assertThatThrownBy(() -> full.table().set("other", new byte[1500]))
        .isInstanceOf(StoreException.class);

    full.execute(
        List.of(new Caller.Will("log/", new byte[500]), new Caller.Will("log/", new byte[600])));

    assertThat(full.table().get("log/1")).hasSize(500);
    assertThat(full.table().get("log/2")).hasSize(600);
    assertThatThrownBy(() -> full.table().set("other", new byte[1]))
        .isInstanceOf(StoreException.class);
    full.table().set("key", new byte[799]);
    assertThat(full.table().get("key")).hasSize(799);
    full.table().delete("log/1");
    full.table().delete("log/2");
    full.table().set("other", new byte[1]);
    assertThat(full.table().get("other")).hasSize(1);
  }

  @Test
  void aWillIsPublishedWhereTheLogBegins() {
    RequestHandler handler = new RequestHandler(2000, Protocol.MAX_BODY_BYTES);
    handler.table().set("log/first", "7\nand more".getBytes(StandardCharsets.UTF_8));
    handler.table().set("log/7", new byte[1]);
    handler.execute(
        List.of(new Caller.Will("log/", new byte[2]), new Caller.Will("other/", new byte[3])));
    assertThat(handler.table().get("log/8")).hasSize(2);
    assertThat(handler.table().get("other/1")).hasSize(3);
    handler.table().set("other/first", new byte[] {'x'});
    handler.execute(List.of(new Caller.Will("other/", new byte[4])));
    assertThat(handler.table().get("other/2")).hasSize(4);
  }

  @Test
  void aWillCountsAsHeldByItsClient() {
    Map<Long, Long> held = new HashMap<>();
    Asker asker =
        new Asker(true, Integer.MAX_VALUE) {
          @Override
          void hold(long call, long bytes) {
            if (bytes > 5000) {
              throw new StoreException("too much");
            }
            held.put(call, bytes);
          }

          @Override
          void release(long call) {
            held.remove(call);
          }

          @Override
          public void fail(long call, Throwable failure, BodyWriter body) {
            refuse(call, failure, body);
          }
        };
    leaveWill(asker, 1, 1000);
    assertThat(held).hasEntrySatisfying(1L, bytes -> assertThat(bytes).isBetween(1004L, 2000L));
    leaveWill(asker, 2, 6000);
    ask(asker, Protocol.WITHDRAW, 3, body -> body.putLong(1));
    assertThat(asker.replies).containsExactly("1: 8", "2: failed", "3: 0");
    assertThat(held).isEmpty();
    assertThat(asker.wills).isEmpty();
  }

  private void leaveWill(Caller caller, long call, int bytes) {
    ask(
        caller,
        Protocol.WILL,
        call,
        body -> {
          body.putText("log/");
          body.putBytes(new byte[bytes]);
        });
  }

  @Test
  void severalValuesAreSetTogetherOrNotAtAll() {
    RequestHandler small = new RequestHandler(2000, Protocol.MAX_BODY_BYTES);
    small.table().set("first", new byte[500]);
    assertThatThrownBy(
            () ->
                small
                    .table()
                    .setAll(List.of("first", "second"), i -> new byte[i == 0 ? 600 : 1500]))
        .isInstanceOf(StoreException.class);
    assertThat(small.table().get("first")).hasSize(500);
    assertThat(small.table().get("second")).isNull();
    small.table().setAll(List.of("first", "second", "first"), i -> new byte[100 + i]);
    assertThat(small.table().get("first")).hasSize(102);
    assertThat(small.table().get("second")).hasSize(101);
  }
}
