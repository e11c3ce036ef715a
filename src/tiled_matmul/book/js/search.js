/* The search page: it lists the sections of the book that have the words of a query, best first.
   BOOK, the index, is in sections.js, which sections.py writes. */
"use strict";

const SHOWN = 50;
const EXCERPT = 240; // characters
const LEAD = 70; // characters before the first word that was found
// A word in a section's title counts more than one in a term of the glossary, and so on.
const WEIGHTS = { title: 12, term: 9, names: 3, text: 1 };
const KINDS = { chapter: 1, glossary: 0.8, other: 0.4, solution: 0.4 };
// Sections that only list what is elsewhere.
const LISTS = new Set(["exercises", "sources", "what-you-can-now-do"]);
const SMALL_WORDS = new Set(
  "a an and are be by can do does for from how i in is it of on or the to what when which why with".split(" ")
);
const WORD = /[\p{L}\p{N}_]+(?:[.'’-][\p{L}\p{N}_]+)*/gu;
const SEAM = /[._'’-]+|(?<=\p{Ll})(?=\p{Lu}\p{Ll})/u;

const words = (text) => text.match(WORD) ?? [];
const isSmall = (word) => SMALL_WORDS.has(word.toLowerCase());

/* Return the parts of a name: thread, Idx and x of threadIdx.x, group and m of group_m. */
const parts = (word) => word.split(SEAM).filter(Boolean);

/* Return what plural and singular, -ed and -ing, British and American spelling have in common. */
function stem(word) {
  const low = word.toLowerCase();
  if (!/^[a-z]{4,}$/.test(low)) return low;
  return low
    .replace(/iz/, "is")
    .replace(/ies$/, "y")
    .replace(/(ch|sh|ss|x)es$/, "$1")
    .replace(/([^s])s$/, "$1")
    .replace(/([aeiouy].*[^e])(?:ing|ed)$/, "$1")
    .replace(/([bdfgkmnprt])\1$/, "$1")
    .replace(/(..)e$/, "$1");
}

/* Return what a word is found by: cuda.threadIdx.x by itself, threadIdx.x, threadIdx, thread, …. */
function forms(word) {
  if (!known.has(word)) {
    const names = word.split(".");
    const ends = names.map((_, i) => names.slice(i).join("."));
    known.set(word, [...new Set([...ends, ...names, ...parts(word)].map(stem))]);
  }
  return known.get(word);
}
const known = new Map();

const sections = BOOK.flatMap(({ page, kind, sections }) =>
  sections.map(([place, title, text, code, folded, stressed]) => ({
    address: `${page}#${place}`,
    weight: KINDS[kind] * (LISTS.has(place) ? 0.3 : 1),
    solved: kind === "solution",
    heading: title === sections[0][1] ? [title] : [sections[0][1], title],
    // The glossary stresses the other names of a term.
    ...(kind === "glossary" ? { term: `${title} ${stressed}` } : { title }),
    names: [...text.split("`").filter((_, i) => i % 2), stressed, code, folded].join("\n"),
    text,
    code,
    folded,
  }))
).map((section, id) => ({ id, ...section }));

const engine = new MiniSearch({
  fields: Object.keys(WEIGHTS),
  tokenize: (text) => words(text).flatMap(forms),
  processTerm: (term) => term,
});
engine.addAll(sections);

/* Return what a match gains if all words that were asked for are in the section's title. */
function bonus(section, asked) {
  const title = words(section.heading.at(-1)).filter((word) => !/^\d/.test(word));
  const stems = title.flatMap(forms);
  if (!asked.every((word) => stems.some((stem) => stem.startsWith(word)))) return 1;
  return title.length === asked.length ? 6 : 3;
}

/* Return the matches, best first and solutions last, and whether they have all words. */
function find(query) {
  const all = words(query);
  const large = all.filter((word) => !isSmall(word));
  const asked = large.length ? large : all;
  const whole = {
    tokenize: () => asked.map(stem),
    combineWith: "AND",
    prefix: (term) => term.length > 2,
    boost: WEIGHTS,
    boostDocument: (id) => sections[id].weight,
  };
  const split = { ...whole, tokenize: () => asked.flatMap(parts).map(stem) };
  const loose = { ...split, combineWith: "OR", fuzzy: 0.2 };
  for (const options of [whole, split, loose]) {
    const stems = options.tokenize();
    const matches = engine.search(query, options).map(({ id, terms, score }) => ({
      section: sections[id],
      terms: new Set(terms),
      score: score * bonus(sections[id], stems),
    }));
    matches.sort((a, b) => a.section.solved - b.section.solved || b.score - a.score);
    if (matches.length) return { matches, complete: options !== loose };
  }
  return { matches: [], complete: false };
}

const isMatch = (word, terms) => forms(word).some((form) => terms.has(form));

/* Return how many of the terms a text has. */
function matched(text, terms) {
  return new Set(words(text).flatMap(forms).filter((form) => terms.has(form))).size;
}

/* Return the first of some texts that has the most terms. */
function best(texts, terms) {
  const counts = texts.map((text) => matched(text, terms));
  return texts[counts.indexOf(Math.max(...counts))];
}

/* Return the piece of a text that begins near `start`; code in it stays between backticks. */
function piece(text, start) {
  const from = start > LEAD ? text.indexOf(" ", start - LEAD) + 1 : 0;
  const to = text.indexOf(" ", from + EXCERPT);
  const inCode = text.slice(0, from).split("`").length % 2 === 0;
  const shown = text.slice(from, to < 0 ? undefined : to);
  return `${from ? "… " : ""}${inCode ? "`" : ""}${shown}${to < 0 ? "" : " …"}`;
}

/* Return what shows best why a section was found: a piece of its text, or names in its code. */
function excerpt(section, terms) {
  const found = [...section.text.matchAll(WORD)].filter((match) => isMatch(match[0], terms));
  const pieces = [0, ...found.map((match) => match.index)].map((at) => piece(section.text, at));
  const line = best(section.code.split("\n"), terms).trim();
  const folded = words(section.folded).filter((word) => isMatch(word, terms));
  const names = folded.map((word) => `\`${word}\``).join(", ");
  return best([best(pieces, terms), `\`${line}\``, `In its folded code: ${names}`], terms);
}

/* Append a text to an element, with marks on the words that were found. */
function append(element, text, terms) {
  let done = 0;
  for (const match of text.matchAll(WORD)) {
    if (!isMatch(match[0], terms)) continue;
    const mark = document.createElement("mark");
    mark.textContent = match[0];
    element.append(text.slice(done, match.index), mark);
    done = match.index + match[0].length;
  }
  element.append(text.slice(done));
}

function item({ section, terms }, query) {
  const link = document.createElement("a");
  link.href = section.address;
  append(link, section.heading.join(" › "), terms);
  // The page that it leads to marks these words (Sphinx's sphinx_highlight.js).
  const marked = words(query).filter((word) => word.length > 2).join(" ");
  link.addEventListener("click", () => localStorage.setItem("sphinx_highlight_terms", marked));
  const text = document.createElement("p");
  for (const [i, part] of excerpt(section, terms).split("`").entries()) {
    append(i % 2 ? text.appendChild(document.createElement("code")) : text, part, terms);
  }
  const made = document.createElement("li");
  made.append(link, text);
  return made;
}

function sentence(query, { matches, complete }) {
  if (!matches.length) return `No section for “${query}”`;
  const count = `${matches.length} section${matches.length > 1 ? "s" : ""}`;
  const first = matches.length > SHOWN ? `, the first ${SHOWN} of them` : "";
  if (complete) return `${count} for “${query}”${first}`;
  return `No section has all of “${query}”; ${count} with some of it${first}`;
}

const query = new URLSearchParams(location.search).get("q")?.trim() ?? "";
for (const field of document.querySelectorAll("form.bd-search input")) field.value = query;
document.querySelector(".bd-search-container input").focus();
if (query) {
  const found = find(query);
  const heading = document.createElement("h2");
  heading.textContent = sentence(query, found);
  document.getElementById("search-count").append(heading);
  document
    .getElementById("search-results")
    .append(...found.matches.slice(0, SHOWN).map((match) => item(match, query)));
  document.title = `${query} - ${document.title}`;
}
