#!/bin/sh
# Lays out Qwen's tokenizer and chat template as a model directory has them: qwen_tokenizer.sh SHARED DIR
set -eu
shared=$1
dir=$2
[ -s "$dir/chat_template.jinja" ] && exit 0
mkdir -p "$dir"
gzip -dc "$shared/qwen/tokenizer.json.gz" >"$dir/tokenizer.json.tmp"
mv "$dir/tokenizer.json.tmp" "$dir/tokenizer.json"
cp "$shared/qwen/tokenizer_config.json" "$dir/tokenizer_config.json"
cp "$shared/qwen/qwen36_chat_template.jinja" "$dir/chat_template.jinja.tmp"
mv "$dir/chat_template.jinja.tmp" "$dir/chat_template.jinja"
