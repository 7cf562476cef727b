#!/usr/bin/env bash
# Builds all fuzz targets with coverage on the stable toolchain and runs one of them, or all.
#
#   fuzz/run.sh TARGET SECONDS [libFuzzer options]
#   fuzz/run.sh all SECONDS        each target so long, two at a time
#   fuzz/run.sh list
#
# What it learns goes to fuzz/corpus/TARGET, a failing input to fuzz/artifacts/TARGET.
set -eu
cd "$(dirname "$0")"
# What cargo-fuzz sets, but for the sanitizers, which stable compilers do not have. A target of its
# own keeps build scripts without coverage.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-stack-depth
  --cfg fuzzing"
host=$(rustc -vV | sed -n 's/^host: //p')
targets=$(cd fuzz_targets && ls ./*.rs | sed 's|^\./||; s|\.rs$||')
target=${1:-list}
seconds=${2:-10}
shift $(($# < 2 ? $# : 2))
if [ "$target" = list ]; then
  echo "$targets"
  exit
fi
RUSTFLAGS="$coverage" cargo build --release --locked --target "$host" --target-dir target --bins

run() {
  local name=$1 log=target/$1.log options=()
  shift
  mkdir -p "corpus/$name" "artifacts/$name" "regressions/$name" "seeds/$name"
  if [ -f "dict/$name.dict" ]; then options+=("-dict=dict/$name.dict"); fi
  if "target/$host/release/$name" "corpus/$name" "seeds/$name" "regressions/$name" \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 \
    -artifact_prefix="artifacts/$name/" -print_final_stats=1 "${options[@]}" "$@" >"$log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions in $seconds s," \
      "$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
  else
    tail -n 60 "$log"
    echo "$name FAILED"
    return 1
  fi
}

if [ "$target" != all ]; then
  run "$target" "$@"
  exit
fi
export -f run
export host seconds
echo "$targets" | xargs -P 2 -I {} bash -c 'run {}'
