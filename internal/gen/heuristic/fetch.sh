#!/bin/sh
# fetch.sh DIR downloads the packages listed in sources.txt and unpacks them into
# DIR, for use with: go run . -packages DIR
#
# It needs Debian 12 (apt-get and dpkg-deb, with up-to-date package lists), npm,
# go, unzip and diff.
set -eu
export LC_ALL=C # the output of diff depends on it
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/packed" "$1/go/diffs"
dir=$(cd "$1" && pwd)
cd "$dir/packed"

check() { # check FILE SHA256
	echo "$2  $1" | sha256sum -c --quiet -
}

grep -v '^#' "$here/sources.txt" | while read -r kind name version sum; do
	case $kind in
	deb)
		pattern="${name}_$(echo "$version" | sed 's/:/%3a/')_*.deb"
		[ -n "$(find . -name "$pattern")" ] || apt-get -q download "$name=$version"
		file=$(find . -name "$pattern")
		check "$file" "$sum"
		mkdir -p "$dir/$name"
		dpkg-deb -x "$file" "$dir/$name"
		;;
	npm)
		file=$(echo "$name-$version.tgz" | sed 's/^@//; s,/,-,')
		[ -f "$file" ] || npm pack --silent "$name@$version"
		check "$file" "$sum"
		to="$dir/npm-$(echo "$name" | sed 's/^@//; s,/,-,')"
		mkdir -p "$to"
		tar -xzf "$file" -C "$to"
		;;
	esac
done

# The language packs of Firefox are archives inside the packages.
for pack in "$dir"/firefox-esr-l10n-*; do
	mkdir -p "$pack/xpi"
	find "$pack/usr" -name '*.xpi' -exec unzip -qo {} -d "$pack/xpi" \;
done

# For each Go module: the files of the newer version, and a diff from the older one.
cd "$dir"
modules=$(go env GOMODCACHE)
for module in $(awk '$1 == "go" {print $2 "@" $3}' "$here/sources.txt"); do
	go mod download "$module"
done
take() { # take MODULE OLD NEW NAME
	rm -rf "go/$4"
	cp -r "$modules/$1@$3" "go/$4"
	chmod -R u+w "go/$4"
	[ "$2" = none ] && return
	# Remove the file times, which are those of unpacking.
	(cd "$modules" && diff -ru "$1@$2" "$1@$3" || true) |
		sed "s/^\(--- [^	]*\)	.*/\1/; s/^\(+++ [^	]*\)	.*/\1/" >"go/diffs/$4.diff"
}
take github.com/cli/cli/v2 v2.62.0 v2.63.0 cli
take github.com/prometheus/prometheus v0.300.0 v0.301.0 prometheus
take github.com/gohugoio/hugo none v0.139.0 hugo
