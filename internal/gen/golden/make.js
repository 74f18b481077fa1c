"use strict";
// Writes golden.jsonl, codepoints.txt and classes.txt to the directory that is
// its argument: the output of OpenAI's tokenizer code for many strings and for
// every code point, and the characters that it takes for letters, marks and so
// on. The same versions of tiktoken and node write the same files.

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { Tiktoken } = require("tiktoken");
const hand = require("./texts.js");
const { random } = require("./random.js");

const home = path.dirname(require.resolve("tiktoken/tiktoken_bg.wasm"));
const { version } = JSON.parse(fs.readFileSync(path.join(home, "package.json"), "utf8"));
const seed = 20241121;
const names = ["cl100k_base", "o200k_base"];
const out = process.argv[2];
if (!out) {
  console.error("usage: node make.js directory");
  process.exit(2);
}

const sha256 = (data) => crypto.createHash("sha256").update(data).digest("hex");

const sources = names.map((name) => require(`tiktoken/encoders/${name}.json`));
const encoders = sources.map((s) => new Tiktoken(s.bpe_ranks, s.special_tokens, s.pat_str));

// rankFile converts the packed ranks of the npm package to the published format.
function rankFile(packed) {
  let file = "";
  for (const line of packed.split("\n").filter(Boolean)) {
    const [, offset, ...tokens] = line.split(" ");
    tokens.forEach((token, i) => (file += `${token} ${Number(offset) + i}\n`));
  }
  return file;
}

// mix adds ids to the 32-bit hash h: h = (h xor id) * 16777619 for each id, then
// the same for the number of ids.
function mix(h, ids) {
  for (const id of ids) h = Math.imul(h ^ id, 16777619);
  return Math.imul(h ^ ids.length, 16777619);
}
const start = 2166136261 | 0;
const hex = (h) => (h >>> 0).toString(16).padStart(8, "0");

// quote returns s as JSON, and escapes every character that an editor may not show.
const quote = (s) => JSON.stringify(s).replace(/[^\p{L}\p{N}\p{P}\p{S} ]|[\u{10000}-\u{10FFFF}]/gu,
  (c) => c.split("").map((u) => "\\u" + u.charCodeAt(0).toString(16).padStart(4, "0")).join(""));

// strings returns [text, times] pairs without duplicates.
function strings() {
  const list = [];
  const seen = new Set();
  const add = (text, times = 1) => {
    const key = times + " " + text;
    if (text === "" || seen.has(key)) return;
    seen.add(key);
    list.push([text, times]);
  };
  const all = [...hand.prose, ...hand.code, ...hand.contractions, ...hand.spaces, ...hand.unusual, ...hand.specials];
  all.forEach((s) => add(s));
  for (const s of [...hand.prose, ...hand.code]) {
    for (const c of [s.toUpperCase(), s.normalize("NFD"), " " + s + " \n", s.replace(/ /g, "  "), s.replace(/ /g, "\n")]) add(c);
  }
  for (const a of hand.spaces) {
    for (const c of ["x" + a, a + "x", "x" + a + "y", a + "1", a + a + "!", "!" + a, a + "'s", "a" + a + a + "b", a + " b", " " + a + "b", a + "\nb", "\n" + a + "b"]) add(c);
  }
  for (const u of hand.unusual) {
    for (const c of [u + "'s", "x" + u + "y", " " + u, "1" + u + "23", ".." + u + "'ll", u + u + u, "A" + u + "a" + u + "A", u + "\n/"]) add(c);
  }
  for (let n = 1; n <= 13; n++) {
    for (const c of ["12345678901234".slice(0, n), "x" + "0".repeat(n) + "y", " " + "9".repeat(n) + "." + "5".repeat(n)]) add(c);
  }
  for (const c of ["a", "A", "z", " ", "\n", "\t", "\r\n", "=", "-", "*", "#", ".", "/", "_", "0", "9", "!", "'", "\u00a0", "\u3000", "é", "ß", "д", "α", "ا", "अ", "ก", "中", "の", "ー", "한", "😀", "\u0301", "\ufffd", "\u{1D400}", "𠮷", "ab", "aB", "1a", " a", " \n", "'s", "\n\t"]) {
    for (const n of [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129, 200, 257]) add(c, n);
  }
  for (const c of ["a", "ab", " ", "\n", "=", "0", "中", "д", "ー", "😀", "\u0301", " a", "'s"]) {
    for (const n of [1000, 5000]) add(c, n);
  }
  for (const s of random(seed, 900)) add(s);
  return list;
}

// classes are tried as patterns of the tokenizer, to find the class of a code point.
const classes = [["U", "[\\p{Lu}\\p{Lt}]"], ["l", "\\p{Ll}"], ["L", "[\\p{Lm}\\p{Lo}]"], ["M", "\\p{M}"], ["N", "\\p{N}"], ["s", "\\s"]];

function* codePoints() {
  for (let cp = 0; cp <= 0x10ffff; cp++) if (cp < 0xd800 || cp > 0xdfff) yield cp;
}

function writeClasses() {
  const table = new Map();
  for (const [letter, pattern] of classes) {
    const probe = new Tiktoken(sources[0].bpe_ranks, {}, pattern);
    for (const cp of codePoints()) {
      if (probe.encode_ordinary(String.fromCodePoint(cp)).length > 0) table.set(cp, letter);
    }
    probe.free();
  }
  const lines = [`# tiktoken ${version}: U Lu Lt, l Ll, L Lm Lo, M M, N N, s \\s; first code point and how many`];
  let first = 0, last = -2, letter = "";
  const flush = () => {
    if (letter) lines.push(`${letter} ${first.toString(16)} ${last - first + 1}`);
  };
  for (const cp of codePoints()) {
    const now = table.get(cp) ?? "";
    if (now !== letter || cp !== last + 1) {
      flush();
      first = cp;
      letter = now;
    }
    last = cp;
  }
  flush();
  fs.writeFileSync(path.join(out, "classes.txt"), lines.join("\n") + "\n");
}

// contexts place a code point where its class makes a difference to the tokens.
const contexts = [(c) => c + "'s", (c) => "1" + c + "23 " + c, (c) => "  .." + c + "'ll", (c) => "aA" + c + "Aa " + c + "A", (c) => c + " " + c + "\n " + c + "/\n\n" + c];

function writeCodePoints() {
  const lines = [`# tiktoken ${version}: one hash for 256 code points, in ${contexts.length} contexts each, 16 hashes a line`];
  encoders.forEach((encoder, e) => {
    lines.push(names[e]);
    let row = [];
    for (let block = 0; block < 0x110000; block += 256) {
      let h = start;
      for (let cp = block; cp < block + 256; cp++) {
        if (cp >= 0xd800 && cp <= 0xdfff) continue;
        const c = String.fromCodePoint(cp);
        for (const context of contexts) h = mix(h, encoder.encode_ordinary(context(c)));
      }
      row.push(hex(h));
      if (row.length === 16) {
        lines.push(row.join(" "));
        row = [];
      }
    }
  });
  fs.writeFileSync(path.join(out, "codepoints.txt"), lines.join("\n") + "\n");
}

function writeGolden() {
  const head = { tiktoken: version, seed, wasm: sha256(fs.readFileSync(path.join(home, "tiktoken_bg.wasm"))), encodings: {} };
  sources.forEach((s, e) => (head.encodings[names[e]] = { pattern: s.pat_str, ranks: sha256(rankFile(s.bpe_ranks)) }));
  const lines = [JSON.stringify(head)];
  for (const [text, times] of strings()) {
    const [cl, o] = encoders.map((encoder) => encoder.encode_ordinary(text.repeat(times)));
    const fields = [`"text":${quote(text)}`];
    if (times > 1) fields.push(`"times":${times}`);
    fields.push(`"cl100k":[${cl.length},"${hex(mix(start, cl))}"]`, `"o200k":[${o.length},"${hex(mix(start, o))}"]`);
    lines.push(`{${fields.join(",")}}`);
  }
  fs.writeFileSync(path.join(out, "golden.jsonl"), lines.join("\n") + "\n");
  console.log(`${lines.length - 1} strings`);
}

fs.mkdirSync(out, { recursive: true });
writeGolden();
writeClasses();
writeCodePoints();
