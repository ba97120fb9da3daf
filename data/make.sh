#!/usr/bin/env bash
# Makes data/english.txt, 2.6 MB of English: quotations, jokes and short texts from Debian's fortune cookies. The packages are
# downloaded and unpacked, but not installed. Equal versions of the packages give equal files. The program then makes a
# vocabulary, english.bpe, and the tokens, english.bin.
#
#   data/make.sh PROGRAM      called by `make data`
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."

tokens() {
  [ data/english.bpe -nt data/english.txt ] || "$program" data train-bpe data/english.txt --vocabulary 4096
  [ data/english.bin -nt data/english.bpe ] || "$program" data tokenize data/english.txt --tokenizer data/english.bpe
}

if [ -s data/english.txt ]; then
  echo "data/english.txt is there ($(wc -c < data/english.txt) bytes); remove it to make it anew"
  tokens
  exit 0
fi
command -v apt-get > /dev/null || { echo "make data wants apt-get: it takes its text from a Debian package" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! apt-cache policy fortunes | grep -q Candidate; then apt-get update -q; fi  # a bare machine has no lists yet
(cd "$work" && apt-get -o APT::Sandbox::User="$(id -un)" download -q fortunes fortunes-min)
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
# Each text has an index (.dat) and a link (.u8) beside it, which are left out. Lines with only % separate the cookies, and are
# replaced by empty lines. Overstruck characters are removed.
LC_ALL=C find "$work/root/usr/share/games/fortunes" -type f ! -name '*.dat' ! -name '*.u8' | LC_ALL=C sort | xargs cat |
  sed -e 's/^%$//' -e 's/.\x08//g' > "$work/english.txt"
mv "$work/english.txt" data/english.txt
echo "data/english.txt: $(wc -c < data/english.txt) bytes, $(wc -w < data/english.txt) words"
tokens
