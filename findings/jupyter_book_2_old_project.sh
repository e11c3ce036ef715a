#!/usr/bin/env bash
# Package: jupyter-book 2.1.7
# Date: 2026-11-27
# Behaviour: In a project of Jupyter Book 1, with _config.yml and _toc.yml, `jupyter-book build`
#     of version 2 makes no page and exits with 0.
# Guess: It builds the book, converts the two files, or fails.
# Seen:
#     build: exit code 0, 0 pages, _config.yml and _toc.yml kept
#     build --html: exit code 0, 0 pages, _config.yml and _toc.yml kept

source "$(dirname "$0")/lib.sh"
install book jupyter-book==2.1.7
mkdir "$folder/project"
cat >"$folder/project/_config.yml" <<<$'title: A book\nauthor: An author'
cat >"$folder/project/_toc.yml" <<<$'format: jb-book\nroot: intro\nchapters:\n- file: one'
cat >"$folder/project/intro.md" <<<$'# A book\n\nText.'
cat >"$folder/project/one.md" <<<$'# A chapter\n\nText.'
seen=""
for options in "" " --html"; do
    # shellcheck disable=SC2086
    (cd "$folder/project" && HOME=$folder "$folder/book/bin/jupyter-book" build $options </dev/null >&2)
    seen+="build$options: exit code $?, $(find "$folder/project" -name '*.html' | wc -l) pages, "
    seen+="$(cd "$folder/project" && echo _*.yml | sed 's/ / and /') kept"$'\n'
done
judge "${seen%$'\n'}"
