package dev.tutti.cuda.collective;

import dev.tutti.cuda.share.PeerMemory;
import dev.tutti.gloo.spi.RankNotes;

/** What the ranks of a group of more than one share. */
record SharedParts(MemoryPlan plan, HostKernels kernels, RankNotes notes, PeerMemory memory) {}
