package dev.tutti.aeron.cluster.member;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.ClusterMembersExtendedResponseDecoder;
import io.aeron.cluster.codecs.ClusterMembersExtendedResponseDecoder.ActiveMembersDecoder;
import io.aeron.cluster.codecs.MessageHeaderDecoder;
import io.aeron.cluster.service.ConsensusModuleProxy;
import io.aeron.logbuffer.FragmentHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** A question to a member's consensus module about all members. */
final class MemberQuery {
  private static final long PAUSE_NANOS = 1_000_000;

  private MemberQuery() {}

  /**
   * Returns the log positions of all members, as the leader has them; empty if there is no answer
   * in time.
   *
   * @param aeron a client of the member's driver
   * @param asked the member's consensus module
   * @param deadline when to give up, by {@link System#nanoTime}
   */
  static List<Long> positions(Aeron aeron, ConsensusModule.Context asked, long deadline) {
    List<Long> positions = new ArrayList<>();
    long question = aeron.nextCorrelationId();
    ClusterMembersExtendedResponseDecoder body = new ClusterMembersExtendedResponseDecoder();
    MessageHeaderDecoder head = new MessageHeaderDecoder();
    FragmentHandler handler =
        new FragmentAssembler(
            (buffer, offset, length, header) -> {
              head.wrap(buffer, offset);
              if (head.schemaId() == MessageHeaderDecoder.SCHEMA_ID
                  && head.templateId() == ClusterMembersExtendedResponseDecoder.TEMPLATE_ID) {
                body.wrapAndApplyHeader(buffer, offset, head);
                if (body.correlationId() == question) {
                  for (ActiveMembersDecoder member : body.activeMembers()) {
                    positions.add(member.logPosition());
                    member.sbeSkip(); // otherwise the next member is read from this one's endpoints
                  }
                }
              }
            });
    try (Subscription answers =
            aeron.addSubscription(asked.controlChannel(), asked.serviceStreamId());
        Publication questions =
            aeron.addPublication(asked.controlChannel(), asked.consensusModuleStreamId());
        ConsensusModuleProxy module = new ConsensusModuleProxy(questions)) {
      boolean isAsked = false;
      while (positions.isEmpty() && deadline - System.nanoTime() > 0) {
        if (!isAsked && answers.isConnected() && questions.isConnected()) {
          isAsked = module.clusterMembersQuery(question);
        }
        if (answers.poll(handler, 1) == 0) {
          LockSupport.parkNanos(PAUSE_NANOS);
        }
      }
    }
    return positions;
  }
}
