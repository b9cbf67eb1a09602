// Where each page of the repository stands on the site: [file in the repository, path on the site, name in the
// sidebar, further words for which the search shows it first]. A page of docs/ that is not listed goes to the end of
// Reference if it lies in docs/reference, else to the end of Guides, under its first heading.
export const sections = [
  {
    text: 'Start',
    pages: [
      ['README.md', 'start', 'Getting started', 'install maven gradle dependency jdk quickstart'],
      ['docs/tutorial.md', 'tutorial', 'Tutorial', 'example learn'],
      ['examples/README.md', 'examples', 'Examples'],
      ['CHANGELOG.md', 'changelog', 'Changes'],
    ],
  },
  {
    text: 'Guides',
    pages: [
      ['docs/training.md', 'training', 'DJL and PyTorch\'s Java bindings', 'DJL trainer'],
      ['docs/gradients.md', 'gradients', 'Gradients from your own code', 'bucket buckets PowerSGD optimizer'],
      ['docs/checkpoints.md', 'checkpoints', 'Checkpoints', 'checkpoint save load resume'],
      ['docs/unit-tests.md', 'unit-tests', 'Unit tests and faults', 'World junit test tests'],
      ['docs/debugging.md', 'debugging', 'Ranks from an IDE', 'jdwp debugger debug breakpoint exec eclipse intellij'],
      ['docs/hosts.md', 'hosts', 'Several hosts', 'host network interface'],
      ['docs/launchers.md', 'launchers', 'Launchers', 'torchrun mpirun srun slurm kubernetes nproc'],
      ['docs/gpus.md', 'gpus', 'GPUs', 'gpu cuda nccl nvlink'],
      ['docs/interop.md', 'interop', 'PyTorch jobs', 'python libtorch'],
      ['docs/stores.md', 'stores', 'Stores', 'store TcpStore FileStore rendezvous'],
      ['docs/security.md', 'security', 'Security', 'token TLS'],
      ['docs/elastic.md', 'elastic', 'Elastic jobs', 'shrink grow reconfigure'],
      ['docs/scale.md', 'scale', 'How large can it get', 'simulate calibrate cost model hosts'],
      ['docs/embedding.md', 'embedding', 'Embedding'],
      ['docs/watching.md', 'watching', 'Watching a job', 'status trace slow metrics prometheus jfr perfetto'],
      ['docs/micrometer.md', 'micrometer', 'Micrometer'],
      ['docs/spark.md', 'spark', 'Spark'],
      ['docs/lightgbm.md', 'lightgbm', 'LightGBM'],
      ['docs/cuda-ipc.md', 'cuda-ipc', 'CUDA tensors between processes'],
    ],
  },
  {
    text: 'Reference',
    pages: [
      ['docs/operations.md', 'operations', 'Operations', 'operation collective collectives'],
      ['docs/reference/settings.md', 'reference/settings', 'Settings'],
      ['docs/reference/command-line.md', 'reference/command-line', 'Command line', 'bench run doctor completion'],
      ['docs/support.md', 'support', 'Support'],
    ],
  },
  {
    text: 'Inside',
    pages: [
      ['docs/architecture.md', 'architecture', 'Architecture'],
      ['docs/algorithms.md', 'algorithms', 'Algorithms'],
      ['docs/gpu-kernels.md', 'gpu-kernels', 'GPU kernels'],
      ['docs/writing-a-backend.md', 'writing-a-backend', 'Writing a backend'],
      ['docs/design-decisions.md', 'design-decisions', 'Decisions'],
      ['docs/benchmarks.md', 'benchmarks', 'Benchmarks'],
      ['docs/performance-log.md', 'performance-log', 'Performance log'],
      ['docs/jcstress.md', 'jcstress', 'Races under jcstress'],
      ['docs/seeds.md', 'seeds', 'Seeds in PyTorch'],
      ['CONTRIBUTING.md', 'contributing', 'Contributing'],
      ['RELEASING.md', 'releasing', 'Releasing'],
    ],
  },
  {
    text: 'Help',
    pages: [
      ['docs/help.md', 'help', 'Messages and questions', 'hang hangs error'],
      ['docs/from-torch-distributed.md', 'from-torch-distributed', 'Coming from torch.distributed', 'init_process_group'],
    ],
  },
];
