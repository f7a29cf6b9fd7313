#!/usr/bin/env bash
# Runs every test of every module.
#
#   ./test/run.sh [flags of go test]
#
# Says what is missing, and installs it by package name where it may: redis-server,
# and a C compiler for the race detector; with apt-get (as root, or through sudo) or
# brew. Environment:
#
#   REDIS_URL      the server for tests that need none of their own
#   TEST_INTERVAL  length of an interval in tests against real servers, in
#                  milliseconds (300)
#   OTELCOL        the collector that `make otelcol` builds (bin/otelcol-comcount)
#   CI             where set, a test that misses something fails; else it is skipped
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
started=$SECONDS
failed=()
notes=()

have() { command -v "$1" >/dev/null 2>&1; }

# missing prints, in a line, the commands that tests need and this machine lacks.
missing() {
	local tools=()
	have redis-server || tools+=(redis-server)
	have "$(go env CC)" || tools+=(gcc)
	echo ${tools[@]+"${tools[*]}"}
}

# as_root runs a command as root, and fails where that would ask a password of
# nobody.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		sudo "$@"
	else
		return 1
	fi
}

install() {
	local packages=()
	if have apt-get; then
		for tool in "$@"; do
			case $tool in
			gcc) packages+=(gcc libc6-dev) ;;
			*) packages+=("$tool") ;;
			esac
		done
		# RUNLEVEL: Debian starts the services that it installs, but not in runlevel 1.
		# The tests start servers of their own.
		as_root apt-get update -q &&
			as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
				apt-get install -q -y --no-install-recommends "${packages[@]}"
	elif have brew; then
		for tool in "$@"; do
			case $tool in
			redis-server) packages+=(redis) ;;
			*) packages+=("$tool") ;;
			esac
		done
		brew install "${packages[@]}"
	else
		return 1
	fi
}

# step runs one pass. A pass that fails does not keep the others from running.
step() {
	local name=$1 since=$SECONDS
	shift
	printf '\n== %s: %s\n' "$name" "$*"
	if "$@"; then
		printf '== %s: ok, %d s\n' "$name" $((SECONDS - since))
	else
		printf '== %s: FAILED, %d s\n' "$name" $((SECONDS - since))
		failed+=("$name")
	fi
}

if ! have go; then
	echo "test/run.sh: Go 1.26 or newer is missing: https://go.dev/doc/install" >&2
	exit 1
fi
go version || exit 1

lacking=$(missing)
if [ -n "$lacking" ]; then
	echo "missing: $lacking"
	# shellcheck disable=SC2086 # one word a tool
	if install $lacking && [ -z "$(missing)" ]; then
		echo "installed: $lacking"
		export CI=${CI:-true} # it is all there now: nothing may be skipped
	else
		echo "not installed: that takes apt-get as root or with sudo, or brew"
	fi
fi
if [ ! -x "${OTELCOL:-bin/otelcol-comcount}" ]; then
	notes+=("tests of the collector's processes were skipped: run make otelcol first, which takes minutes")
fi
lacking=$(missing)
race=yes
case $lacking in *gcc*)
	race=no
	notes+=("not run with the race detector: no C compiler")
	;;
esac
case $lacking in *redis-server*)
	notes+=("tests against real servers were skipped: no redis-server")
	;;
esac
if [ -n "$lacking" ] && [ -n "${CI:-}" ]; then
	echo "test/run.sh: CI is set, and not all can be tested without: $lacking" >&2
	exit 1
fi

# Every module of go.work but test/, whose tests take real time and real servers and
# have a pass of their own.
units=()
for dir in $(go list -m -f '{{.Dir}}'); do
	[ "$dir" = "$PWD/test" ] || units+=("$dir/...")
done

step vet go vet work
step unit go test -shuffle=on -timeout 10m "$@" "${units[@]}"
# Real servers give no result worth keeping: -count=1.
step integration go test -count=1 -timeout 10m "$@" ./test/...
if [ $race = yes ]; then
	# The library, and what tests it from the outside; -short leaves out what takes
	# long, and tests in bubbles (see internal/bubbletest).
	step race go test -race -short -timeout 10m "$@" ./... ./otelcol/... ./test/redistest/...
fi

echo
for note in ${notes[@]+"${notes[@]}"}; do
	echo "note: $note"
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "FAILED after $((SECONDS - started)) s: ${failed[*]}"
	exit 1
fi
if [ ${#notes[@]} -gt 0 ]; then
	echo "all tests that can run here passed in $((SECONDS - started)) s"
else
	echo "all tests passed in $((SECONDS - started)) s"
fi
