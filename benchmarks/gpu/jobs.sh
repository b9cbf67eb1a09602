# Starts jobs of several ranks on this machine's GPUs; sourced by the scripts beside it.
# Takes from them: here, ranks, and sizes (arguments of each rank's program). Makes a folder, work, that goes at the end.
# MPS=1 lets the processes that share a GPU use it at once instead of by turns (nvidia-cuda-mps-control, started for the jobs alone).
work=$(mktemp -d)
end_jobs() {
  [ "${MPS:-0}" != 1 ] || echo quit | nvidia-cuda-mps-control || true
  rm -rf "$work"
}
trap end_jobs EXIT
if [ "${MPS:-0}" = 1 ]; then
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps-log
  mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
  nvidia-cuda-mps-control -d
fi
gpus=$(nvidia-smi -L | wc -l)
export WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo

find_java() { # [JAVA CLASS_PATH]: without them it compiles with Maven first
  if [ $# -ge 2 ]; then
    java=$1
    class_path=$2
    return
  fi
  local root=$here/../..
  java=$("$root/.ci/jdk25")/bin/java
  (cd "$root" && mvn -q -pl backend-cuda -am test-compile)
  (cd "$root" && mvn -q -pl backend-cuda -am dependency:build-classpath -Dmdep.outputFile="$work/path" -DincludeScope=test)
  class_path=$root/backend-cuda/target/test-classes:$root/backend-cuda/target/classes:$(cat "$work/path")
}

run_java() { "$java" --enable-native-access=ALL-UNNAMED -cp "$class_path" "$@"; }

job() { # NAME COMMAND...: a rank of COMMAND for each rank; its times go to $work/all, as NAME SIZE CUDA CPU
  local name=$1 pids=() rank
  shift
  MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export MASTER_PORT
  for ((rank = 0; rank < ranks; rank++)); do
    RANK=$rank LOCAL_RANK=$((rank % gpus)) "$@" "${sizes[@]}" > "$work/$name$rank" 2>&1 &
    pids+=($!)
  done
  for ((rank = 0; rank < ranks; rank++)); do
    wait "${pids[$rank]}" || { cat "$work/$name$rank"; exit 1; }
  done
  sed -n "s/^[a-z]* \([0-9]*\) [a-z]*: cuda \(.*\) us, cpu \(.*\) us/$name \1 \2 \3/p" "$work/${name}0" | tee -a "$work/all"
}
