#!/bin/sh
# The demo: serves a model, replays recorded agent turns over HTTP, prints the report, stops the server.
#
# With the shared reference data present the model speaks Qwen's tokenizer and the turns are those of the MLPerf Edge
# Agentic trace; otherwise a byte-level tokenizer and the conversations in demo/agent_trace.jsonl. The weights are random:
# speed and reuse are real, the answers are noise.
#
#   HEARTH=build/hearth DEMO_DIR=build/demo sh demo/run.sh [MAX_TOKENS]
set -eu
cd "$(dirname "$0")/.."
hearth=${HEARTH:-build/hearth}
shared=${HEARTH_SHARED:-../shared}
max_tokens=${1:-32}
work=${DEMO_DIR:-build/demo}
mkdir -p "$work"

if [ -r "$shared/qwen/tokenizer.json.gz" ] && [ -r "$shared/mlperf/agentic_coding_2.5h.jsonl" ]; then
    tokenizer=build/qwen-tokenizer
    sh demo/qwen_tokenizer.sh "$shared" "$tokenizer"
    model=$work/tiny-qwen
    trace=$shared/mlperf/agentic_coding_2.5h.jsonl
    selection="--conversations 1 --turns ${DEMO_TURNS:-58}"
    set -- --tokenizer "$tokenizer"
else
    model=$work/tiny
    trace=demo/agent_trace.jsonl
    selection=
    set --
fi
[ -d "$model" ] || "$hearth" synth tiny "$model" "$@"

log=$work/server.log
rm -f "$work/port"
"$hearth" serve "$model" --port 0 --port-file "$work/port" --reasoning off --model-name demo 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT INT TERM

tries=0
until [ -s "$work/port" ]; do
    kill -0 "$server" 2>/dev/null || { echo "demo: the server ended:" >&2; cat "$log" >&2; exit 1; }
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || { echo "demo: the server did not start within 60 s" >&2; exit 1; }
    sleep 0.1
done
url=http://127.0.0.1:$(cat "$work/port")
echo "serving $model at $url (log: $log)"

status=0
# shellcheck disable=SC2086 # the selection is a list of options
"$hearth" bench perf --base-url "$url" --trace "$trace" --model demo --tokenizer "$model" $selection \
    --max-tokens "$max_tokens" --report-dir "$work/report" --svg "$work/report/turns.svg" || status=$?

kill "$server"
wait "$server" || true
trap - EXIT
echo "The weights are random: times and reuse are real, the answers are noise, so IoU is near 0."
echo "report files: $work/report (chart: $work/report/turns.svg)"
exit $status
