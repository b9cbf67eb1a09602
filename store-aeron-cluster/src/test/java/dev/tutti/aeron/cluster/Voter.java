package dev.tutti.aeron.cluster;

import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.spi.HostPort;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.BooleanType;
import io.aeron.cluster.codecs.CanvassPositionEncoder;
import io.aeron.cluster.codecs.MessageHeaderDecoder;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import io.aeron.cluster.codecs.RequestVoteDecoder;
import io.aeron.cluster.codecs.VoteEncoder;
import io.aeron.logbuffer.Header;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;
import org.agrona.CloseHelper;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The second member of a cluster, which has an empty log, votes for the first, and never follows.
 */
final class Voter implements AutoCloseable {
  private static final int CONSENSUS_PORT = 1;
  private static final String CHANNEL = "aeron:udp?term-length=64k|endpoint=";

  private final EmbeddedDriver driver;
  private final Aeron aeron;
  private final Subscription heard;
  private final ExclusivePublication said;
  private final MessageHeaderDecoder head = new MessageHeaderDecoder();
  private final MessageHeaderEncoder ownHead = new MessageHeaderEncoder();
  private final UnsafeBuffer message = new UnsafeBuffer(new byte[256]);
  private int template;

  /**
   * Takes part in elections.
   *
   * @param directory the folder for shared memory
   * @param members the members
   */
  Voter(Path directory, String members) {
    ClusterMembers all = ClusterMembers.parse(members);
    Timing timing = new Timing(Timing.DEFAULT_LEASE.toNanos());
    driver = EmbeddedDriver.start(directory, "", timing, 1);
    aeron = EmbeddedDriver.connect(driver.path(), timing);
    int stream = ConsensusModule.Configuration.consensusStreamId();
    heard = aeron.addSubscription(CHANNEL + endpoint(all.member(1)), stream);
    said = aeron.addExclusivePublication(CHANNEL + endpoint(all.member(0)), stream);
  }

  private static HostPort endpoint(HostPort member) {
    return new HostPort(member.host(), member.port() + CONSENSUS_PORT);
  }

  /** Takes part until the first member sends a message of a kind. */
  void voteUntil(int kind) {
    template = -1;
    while (template != kind) {
      if (heard.poll(this::answer, 1) == 0) {
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  private void answer(DirectBuffer buffer, int offset, int length, Header header) {
    head.wrap(buffer, offset);
    template = head.templateId();
    if (template == RequestVoteDecoder.TEMPLATE_ID) {
      vote(new RequestVoteDecoder().wrapAndApplyHeader(buffer, offset, head));
    } else {
      new CanvassPositionEncoder()
          .wrapAndApplyHeader(message, 0, ownHead)
          .logLeadershipTermId(Aeron.NULL_VALUE)
          .logPosition(0)
          .leadershipTermId(Aeron.NULL_VALUE)
          .followerMemberId(1)
          .protocolVersion(ConsensusModule.Configuration.PROTOCOL_SEMANTIC_VERSION);
      offer(CanvassPositionEncoder.BLOCK_LENGTH);
    }
  }

  private void vote(RequestVoteDecoder request) {
    new VoteEncoder()
        .wrapAndApplyHeader(message, 0, ownHead)
        .candidateTermId(request.candidateTermId())
        .logLeadershipTermId(Aeron.NULL_VALUE)
        .logPosition(0)
        .candidateMemberId(request.candidateMemberId())
        .followerMemberId(1)
        .vote(BooleanType.TRUE);
    offer(VoteEncoder.BLOCK_LENGTH);
  }

  /**
   * Sends the message unless nobody listens yet: the first member repeats what was not answered.
   */
  private void offer(int length) {
    long _ = said.offer(message, 0, MessageHeaderEncoder.ENCODED_LENGTH + length);
  }

  @Override
  public void close() {
    CloseHelper.closeAll(aeron, driver);
  }
}
