// Where each page of the repository stands on the site: [file in the repository, path on the site, name in the
// sidebar]. A page of docs/ that is not listed goes to the end of Reference if it lies in docs/reference, else to the
// end of Guides, under its first heading.
export const sections = [
  {
    text: 'Start',
    pages: [
      ['README.md', 'start', 'Getting started'],
      ['examples/README.md', 'examples', 'Examples'],
      ['CHANGELOG.md', 'changelog', 'Changes'],
    ],
  },
  {
    text: 'Guides',
    pages: [
      ['docs/training.md', 'training', 'DJL and PyTorch\'s Java bindings'],
      ['docs/gradients.md', 'gradients', 'Gradients from your own code'],
      ['docs/checkpoints.md', 'checkpoints', 'Checkpoints'],
      ['docs/unit-tests.md', 'unit-tests', 'Unit tests and faults'],
      ['docs/hosts.md', 'hosts', 'Several hosts'],
      ['docs/launchers.md', 'launchers', 'Launchers'],
      ['docs/gpus.md', 'gpus', 'GPUs'],
      ['docs/interop.md', 'interop', 'PyTorch jobs'],
      ['docs/stores.md', 'stores', 'Stores'],
      ['docs/security.md', 'security', 'Security'],
      ['docs/elastic.md', 'elastic', 'Elastic jobs'],
      ['docs/embedding.md', 'embedding', 'Embedding'],
      ['docs/watching.md', 'watching', 'Watching a job'],
      ['docs/micrometer.md', 'micrometer', 'Micrometer'],
      ['docs/spark.md', 'spark', 'Spark'],
      ['docs/lightgbm.md', 'lightgbm', 'LightGBM'],
      ['docs/cuda-ipc.md', 'cuda-ipc', 'CUDA tensors between processes'],
    ],
  },
  {
    text: 'Reference',
    pages: [
      ['docs/operations.md', 'operations', 'Operations'],
      ['docs/reference/settings.md', 'reference/settings', 'Settings'],
      ['docs/reference/command-line.md', 'reference/command-line', 'Command line'],
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
      ['docs/help.md', 'help', 'Messages and questions'],
      ['docs/from-torch-distributed.md', 'from-torch-distributed', 'Coming from torch.distributed'],
    ],
  },
];
