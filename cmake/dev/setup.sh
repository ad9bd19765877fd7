# shellcheck shell=bash
# Set-up for ./dev, which sources this: system packages, wheels and corpora. Each need_* function looks
# first and does nothing when all is there, so that a machine once set up needs no network.
: "${root:?the folder of the checkout}"

say() { printf 'dev: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

[[ -n ${SPES_DEPS:-}${HOME:-} ]] || die "set HOME, or SPES_DEPS to a folder for the dependencies"
deps=${SPES_DEPS:-$HOME/.cache/spes-sim}
[[ $deps == /* ]] || deps=$PWD/$deps
export SPES_DEPS=$deps # CMake and the program read it too
site=$deps/site
pins=$root/cmake/dependencies

[[ $(uname -s) == Linux && $(uname -m) == x86_64 ]] ||
  die "this is $(uname -s) on $(uname -m); LibTorch and ns-3 are pinned for Linux on x86_64 only"

system_name=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") || system_name=unknown
known_system() { [[ $system_name == "debian 12" || $system_name == "ubuntu 24.04" ]]; }

interactive() { [[ -t 2 && ${CI:-} != true ]]; }

# ---- System packages

# packages_missing PACKAGE...: prints those of the packages that are not there.
packages_missing() {
  local package kind probe there=
  if known_system; then
    there=$(dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null | awk '$2 == "ii" { print $1 }') ||
      true
  fi
  for package in "$@"; do
    grep -qxF "$package" <<<"$there" && continue
    read -r kind probe < <(awk -v p="$package" '$1 == p { print $2, $3 }' "$pins/packages.txt") || true
    case ${kind:-command} in
      command) command -v "${probe:-$package}" >/dev/null && continue ;;
      header) ! known_system && header_there "$probe" && continue ;;
    esac
    printf '%s\n' "$package"
  done
}

header_there() {
  printf '#include <%s>\n' "$1" | g++ -std=c++20 -E -x c++ -isystem /usr/include/eigen3 \
    -isystem /usr/include/hdf5/serial - >/dev/null 2>&1
}

# as_root COMMAND...: runs it as root, or ends with what the user can do.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif ! command -v sudo >/dev/null; then
    die "not root and no sudo here: have an administrator run apt-get update && apt-get install ${missing[*]}"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@" # nobody is there to type a password
  fi
}

apt() {
  local quiet=()
  interactive || quiet=(-q)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" -o Acquire::Retries=1 \
    -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120 "$@" </dev/null >&2
}

# update_lists: once in a run, apt's lists of packages.
update_lists() {
  [[ -z ${lists_updated:-} ]] || return 0
  lists_updated=1
  apt update || true # an index of somebody else's that cannot be had need not stop us
}

# need_packages PACKAGE...: installs those that are not there.
need_packages() {
  local missing
  mapfile -t missing < <(packages_missing "$@")
  ((${#missing[@]})) || return 0
  known_system ||
    die "this system ($system_name) is neither Debian 12 nor Ubuntu 24.04; install these (Debian's names): ${missing[*]}"
  command -v apt-get >/dev/null || die "no apt-get here; install these first: ${missing[*]}"
  need_space / 2
  say "installing ${missing[*]}"
  update_lists
  apt install -y --no-install-recommends "${missing[@]}" ||
    die "could not install ${missing[*]}: apt-get says why above (no network? not root?)"
}

need_build_packages() {
  local all
  mapfile -t all < <(awk '!/^#/ { print $1 }' "$pins/packages.txt")
  known_system && all+=(ccache)
  need_packages "${all[@]}"
}

# need_space FOLDER GIB: ends when the disk under the folder has less room.
need_space() {
  local folder=$1 free
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
  ((free >= $2 * 1024 * 1024)) ||
    die "not enough disk space: $1 needs $2 GiB free and has $((free / 1024)) MiB"
}

# need_folder: makes the dependencies' folder and keeps a second ./dev from filling it at the same time.
need_folder() {
  mkdir -p "$deps" 2>/dev/null || die "cannot make $deps: set SPES_DEPS to a folder that can be written"
  [[ -w $deps ]] || die "cannot write to $deps: set SPES_DEPS to a folder that can be written"
  [[ -n ${lock_fd:-} ]] && return
  exec {lock_fd}>"$deps/.lock"
  flock -n "$lock_fd" || {
    say "waiting for another ./dev to finish its set-up"
    flock "$lock_fd"
  }
}

release_folder() {
  [[ -z ${lock_fd:-} ]] || exec {lock_fd}>&-
  lock_fd=
}

# ---- Wheels: LibTorch, ns-3 and the CUDA libraries

# wheels_there LIST: whether the site holds what the list pins; each list leaves its copy there.
wheels_there() {
  [[ -e $site/$1 && $(grep -v '^#' "$pins/$1") == "$(grep -v '^#' "$site/$1")" ]]
}

find_pip() {
  for python in python3 /usr/bin/python3; do
    command -v "$python" >/dev/null && "$python" -m pip --version >/dev/null 2>&1 && return 0
  done
  return 1
}

# need_wheels [--cuda]: unpacks what the lists pin into $site; a half-made site never has that name.
need_wheels() {
  local lists=(wheels.txt) python list fresh=$deps/site.new gib=4
  [[ ${1:-} == --cuda || -e $site/wheels-cuda.txt ]] && lists+=(wheels-cuda.txt) && gib=12
  local all_there=1
  for list in "${lists[@]}"; do wheels_there "$list" || all_there=; done
  [[ $all_there ]] && return
  need_folder
  need_space "$deps" "$gib"
  find_pip || need_packages python3 python3-pip
  find_pip || die "python3 has no pip here: install Debian's python3-pip, or put a python3 with pip on PATH"

  rm -rf "$fresh"
  if wheels_there wheels.txt; then
    cp -al "$site" "$fresh"
    rm -f "$fresh/wheels-cuda.txt"
    lists=(wheels-cuda.txt)
  else
    mkdir "$fresh"
  fi
  for list in "${lists[@]}"; do
    fetch_wheels "$list"
    say "unpacking into $site"
    "$python" "$root/cmake/dev/unpack.py" "$fresh" "$deps/wheels/$list"/*.whl ||
      die "could not unpack the wheels into $fresh (disk full?)"
    cp "$pins/$list" "$fresh/$list"
  done
  rm -rf "$site.old"
  [[ ! -e $site ]] || mv "$site" "$site.old"
  mv "$fresh" "$site"
  rm -rf "$site.old" "$deps/wheels"
}

# fetch_wheels LIST: into $deps/wheels/LIST; pip keeps a file that is there with the right hash.
fetch_wheels() {
  local folder=$deps/wheels/$1 platforms=() tag bar=on log=$deps/pip.log
  for tag in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux_2_17 manylinux2014 \
    manylinux_2_12 manylinux2010; do
    platforms+=(--platform "${tag}_x86_64")
  done
  interactive || bar=off
  say "fetching $(sed -n 's/ --hash.*//p' "$pins/$1" | paste -sd' ')"
  # Whatever Python the host has: these are the files for CPython 3.11, of which only the C++ parts are used.
  "$python" -m pip download --disable-pip-version-check --no-cache-dir --retries 2 --timeout 20 \
    --progress-bar "$bar" --no-deps --only-binary=:all: --require-hashes --python-version 3.11 \
    --implementation cp "${platforms[@]}" --dest "$folder" --requirement "$pins/$1" >&2 2>"$log" || {
    if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
      die "a fetched wheel is not the one that cmake/dependencies/$1 pins: pip's words are in $log"
    fi
    if grep -q 'Retrying' "$log"; then
      die "no network: could not fetch the wheels of cmake/dependencies/$1 from the package index"
    fi
    die "could not fetch the wheels of cmake/dependencies/$1: $(grep ERROR "$log" | tail -n 1)"
  }
  rm -f "$log"
}

# ---- Corpora: texts out of Debian packages, unpacked but not installed

corpora_packages() {
  [[ -e $root/scenarios/corpora.yaml ]] || return 0
  sed -nE 's/^([^#]*[{, ])?package: *"?([a-z0-9][a-z0-9.+-]*).*/\2/p' "$root/scenarios/corpora.yaml" | sort -u
}

# need_corpora [--retry]: fetches every text of the catalogue. The default scenarios need the first two
# packages named here; another that cannot be had is a warning, and is tried again by ./dev setup only.
need_corpora() {
  local package
  for package in $(corpora_packages); do
    [[ -d $deps/corpora/$package ]] && continue
    [[ -e $deps/corpora/$package.missing && ${1:-} != --retry ]] && continue
    need_folder
    mkdir -p "$deps/corpora"
    say "fetching the text of Debian's package $package"
    if fetch_corpus "$package"; then
      rm -f "$deps/corpora/$package.missing"
    elif [[ $package == dict-gcide || $package == wordnet-base ]]; then
      die "could not fetch the text of Debian's package $package: no network, or apt-get update is due"
    else
      say "warning: could not fetch Debian's package $package; scenarios that read it will not run"
      touch "$deps/corpora/$package.missing"
    fi
  done
}

fetch_corpus() {
  local fresh=$deps/corpora/new missing=()
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  rm -rf "$fresh"
  mkdir "$fresh"
  if ! apt_download "$1" "$fresh"; then
    # The lists of packages may be old or empty.
    ((EUID == 0)) || command -v sudo >/dev/null || return 1
    update_lists
    apt_download "$1" "$fresh" || return 1
  fi
  dpkg-deb -x "$fresh"/*.deb "$fresh" && rm "$fresh"/*.deb && mv "$fresh" "$deps/corpora/$1"
}

# apt_download PACKAGE FOLDER: without installing and without being root.
apt_download() {
  local options=()
  ((EUID == 0)) && options+=(-o APT::Sandbox::User=root) # apt's own user may not write here
  interactive || options+=(-q)
  (cd "$2" && apt-get "${options[@]}" -o Acquire::Retries=1 -o Acquire::http::Timeout=20 download "$1" >&2)
}
