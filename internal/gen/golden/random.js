"use strict";
// Makes random strings, the same ones for the same seed.

function generator(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const below = (n) => next() % n;
  const pick = (list) => list[below(list.length)];
  const times = (n, f) => Array.from({ length: n }, f).join("");
  return { below, pick, times };
}

const words = "the quick brown fox jumps over lazy dog and then it can not be that which were said about under between because through another people should would world thing great small large number part place case week company system program question government point home water room mother area money story fact month lot right study book eye job word business issue side kind head house service friend father power hour game line end member law car city community name president team minute idea body information back parent face others level office door health person art war history party result change morning reason research girl guy moment air teacher force education".split(" ");

// scripts are ranges of code points: first and last.
const scripts = [
  [0x41, 0x7a], [0xc0, 0x17f], [0x180, 0x24f], [0x250, 0x2af], [0x370, 0x3ff], [0x400, 0x4ff], [0x531, 0x586], [0x5d0, 0x5ea], [0x620, 0x669], [0x904, 0x96f],
  [0x985, 0x9ef], [0xb85, 0xbef], [0xe01, 0xe5b], [0xe81, 0xed9], [0xf40, 0xfb0], [0x1000, 0x104f], [0x10a0, 0x10ff], [0x1100, 0x11ff], [0x1200, 0x137f], [0x1780, 0x17e9],
  [0x1e00, 0x1fff], [0x2c00, 0x2dff], [0x3041, 0x30ff], [0x3400, 0x4dbf], [0x4e00, 0x9fff], [0xa640, 0xa7ff], [0xac00, 0xd7a3], [0xfb00, 0xfbff], [0xff01, 0xff9f],
  [0x10400, 0x1044f], [0x12000, 0x1236e], [0x1d400, 0x1d7ff], [0x1f300, 0x1f6ff], [0x1f900, 0x1faff], [0x20000, 0x2a6df], [0x2000, 0x206f], [0x2070, 0x209c], [0x2100, 0x218b], [0x2460, 0x24ff], [0x300, 0x36f],
];

const soups = {
  space: [" ", " ", "  ", "\n", "\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\v", "\f", "a", "1", "!", "/", "é"],
  contraction: ["'", "'", "'s", "'T", "'re", "'VE", "'m", "'Ll", "'d", "ſ", "s", "S", "x", "X", "l", "L", "r", "e", " ", "1", ".", "\u0301", "中", "\n"],
  letters: ["a", "b", "A", "B", "é", "É", "ß", "ǅ", "ʰ", "ª", "中", "ا", "\u0301", "\u0308", "д", "Д", "1", " ", "'s", "_"],
  punctuation: ["!", "\"", "#", "(", ")", "/", "/", "\n", "\r", "//", "*", "-", "=", ".", ",", " ", "a", "€", "—", "「", "”", "\u200d", "\ufe0f", "\u0301"],
  digits: ["0", "1", "22", "333", "4444", "55555", ".", ",", "-", " ", "٣", "½", "Ⅳ", "९", "１", "²", "e", "x", "\n"],
  markdown: ["# ", "## ", "* ", "- ", "1. ", "**", "__", "`", "```", "\n", "\n\n", "    ", "| ", " | ", "|---", "[x]", "(u)", "> ", "<br>", "word", "Word", "."],
  code: ["{", "}", "(", ")", "[", "]", ";", ":=", " = ", "==", "!=", "->", "=>", "::", "//", "/*", "*/", "\n", "\n\t", "\n\t\t", "\n    ", "\n        ", "if ", "return ", "func ", "x", "i", "0", "0x1F", "\"s\"", "'c'", ".", ", ", "fooBar", "FOO_BAR", "HTTPServer"],
  json: ["{\"", "\":", "\"", "\",\"", ",", "}", "]", "[", "null", "true", "false", "-1", "0.5", "1e9", "12345", "\\n", "\\u00e9", "id", "name", "value", " ", "\n  "],
};

const alphabets = {
  base64: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
  hex: "0123456789abcdef",
  lower: "abcdefghijklmnopqrstuvwxyz",
  upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  digits: "0123456789",
  ascii: Array.from({ length: 128 }, (_, i) => String.fromCharCode(i)).join(""),
};

// kinds returns a list of functions, each of which makes strings of one kind.
function kinds(g) {
  const char = ([lo, hi]) => String.fromCodePoint(lo + g.below(hi - lo + 1));
  const anyChar = () => {
    let cp;
    do cp = g.below(0x110000);
    while (cp >= 0xd800 && cp <= 0xdfff);
    return String.fromCodePoint(cp);
  };
  const list = [];
  for (const soup of Object.values(soups)) list.push(() => g.times(1 + g.below(60), () => g.pick(soup)));
  for (const alphabet of Object.values(alphabets)) list.push(() => g.times(1 + g.below(120), () => g.pick(alphabet)));
  list.push(() => g.times(1 + g.below(40), () => g.pick(words) + g.pick([" ", " ", " ", ", ", ". ", "\n", "'s ", " (", "-"])));
  list.push(() => g.times(1 + g.below(20), () => { const w = g.pick(words); return w[0].toUpperCase() + w.slice(1); }));
  list.push(() => [8, 4, 4, 4, 12].map((n) => g.times(n, () => g.pick(alphabets.hex))).join("-"));
  for (const script of [...scripts, ...scripts.slice(1)]) {
    list.push(() => g.times(1 + g.below(12), () => g.times(1 + g.below(8), () => char(script)) + g.pick([" ", "", ", ", "\n", "1", "a", "。"])));
  }
  list.push(() => g.times(1 + g.below(40), () => char(g.pick(scripts))));
  list.push(() => g.times(1 + g.below(30), anyChar));
  list.push(() => g.times(1 + g.below(30), () => g.pick([anyChar(), g.pick(alphabets.ascii), char(g.pick(scripts)), g.pick(soups.space), g.pick(soups.contraction)])));
  list.push(() => g.times(200 + g.below(1500), () => g.pick("ab")));
  list.push(() => g.times(200 + g.below(800), () => g.pick(alphabets.lower)));
  list.push(() => g.times(100 + g.below(400), () => g.pick("одна")));
  list.push(() => g.times(100 + g.below(300), () => g.pick("中国人的ーン")));
  list.push(() => g.times(1 + g.below(6), () => g.pick(["a", " ", "\n", "=", "中", "д", "0", "ab"]).repeat(1 + g.below(70))));
  return list;
}

// random returns count strings, taking the kinds in turn.
function random(seed, count) {
  const list = kinds(generator(seed));
  return Array.from({ length: count }, (_, i) => list[i % list.length]());
}

module.exports = { random };
