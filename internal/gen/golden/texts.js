"use strict";
// Strings written by hand: prose, code, and cases that tokenizers get wrong.

const prose = [
  "The kettle had been singing for a minute before anyone noticed. \"It's ready,\" she said; nobody answered.",
  "We'd planned to leave at six, but they're never on time, and I'll admit I'm not either.",
  "Prices rose 3.75% in 2024, from $1,299.00 to $1,347.71, which isn't much (or so they say).",
  "Dear Dr. O'Neill,\n\nThank you for your letter of 14 March. We've looked at rooms 101, 1024 and 65536.\n\n  Yours,\n\tK. D'Souza\n",
  "Der Straßenbahnfahrer aß gemütlich sein Käsebrötchen, während die Fahrgäste über die Verspätung schimpften.",
  "„Ich weiß nicht“, sagte er, „ob’s morgen geht.“ Übrigens: Größe 42½, 19,99 €.",
  "L'été dernier, nous n'avons pas vu la mer ; c'était déjà l'automne quand j'ai reçu ta carte. Où étais-tu ?",
  "¿Quién dijo que mañana no habría niños en el jardín? ¡Qué ilusión! Costó 1.250,50 €.",
  "Amanhã não haverá reunião; as ações da comissão já foram comunicadas à direção.",
  "Perché l'acqua è così fredda? È già inverno, e la città dorme ancora.",
  "De fiets staat al dagen in de regen, maar 's avonds rijdt niemand ermee.",
  "Zażółć gęślą jaźń to zdanie, które każdy programista zna; źdźbło trawy też.",
  "Příliš žluťoučký kůň úpěl ďábelské ódy na břehu řeky.",
  "Árvíztűrő tükörfúrógép: így próbáljuk ki a betűket Magyarországon.",
  "În fiecare dimineață, bunica își bea cafeaua și privește țărmul.",
  "Yağmur dindiğinde İstanbul'un ışıkları bir bir yandı; IĞDIR ve ığdır başka yazılır.",
  "Trời mưa suốt buổi chiều nên chúng tôi ở nhà nấu phở và kể chuyện cũ.",
  "Sää oli kylmä, mutta järven jää kantoi jo; lähdimme hiihtämään yöllä.",
  "Á morgun förum við út að veiða þorsk og ýsu, þótt það sé kalt.",
  "Вчера вечером шёл снег, и к утру двор стал белым. Подъезд не открывался — объявление висело на стене.",
  "Їжак приніс яблуко, а ґава сиділа на дубі й мовчала.",
  "Јуче је падала киша, а њих двоје љубазно чекаху под ђумбиром.",
  "Το πρωί ήπιαμε καφέ στο λιμάνι και μετά περπατήσαμε ώς το κάστρο. ΟΔΥΣΣΕΥΣ, Ὀδυσσεύς.",
  "Գարնանը գյուղի ճանապարհը ծածկվում է ծաղիկներով։",
  "გაზაფხულზე მთებში თოვლი დნება. ᲒᲐᲛᲐᲠᲯᲝᲑᲐ",
  "בבוקר ירד גשם קל, והילדים רצו לבית הספר בלי מטרייה. שָׁלוֹם",
  "في الصباح الباكر خرج الصيادون إلى البحر، وعادوا قبل الغروب بثلاث سمكات. السَّلامُ ١٢٣٤",
  "صبح زود باران بارید و کوچه‌ها خیس شد؛ می‌روم و نمی‌آیم ۴۵۶۷.",
  "آج موسم بہت اچھا ہے، چلو باہر چلتے ہیں۔",
  "सुबह की चाय के साथ उसने पुराना अख़बार पढ़ा और फिर क्षेत्र में घूमने गया। १२३४५",
  "আজ সকালে বৃষ্টি হয়েছিল, তাই আমরা ঘরে বসে গল্প করলাম।",
  "ਅੱਜ ਸਵੇਰੇ ਮੀਂਹ ਪਿਆ।", "આજે સવારે વરસાદ પડ્યો.",
  "காலையில் மழை பெய்தது; நாங்கள் வீட்டில் தேநீர் குடித்தோம்.",
  "ఈ రోజు ఉదయం వర్షం పడింది.", "ಇಂದು ಬೆಳಿಗ್ಗೆ ಮಳೆ ಬಂತು.", "ഇന്ന് രാവിലെ മഴ പെയ്തു.", "අද උදේ වැස්සා.",
  "เมื่อวานฝนตกทั้งวัน พวกเราเลยนั่งดื่มชาอยู่ที่บ้าน ราคา ๑๒๓ บาท",
  "ມື້ນີ້ອາກາດດີຫຼາຍ.", "ဒီနေ့ ရာသီဥတု ကောင်းတယ်။", "ថ្ងៃនេះអាកាសធាតុល្អ។", "དེ་རིང་གནམ་གཤིས་བཟང་པོ་འདུག",
  "ዛሬ ጠዋት ዝናብ ዘነበ።", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ᐃᓄᒃᑎᑐᑦ",
  "昨天晚上下了一场小雨，今天早上院子里的花都开了。他说：“我们去看看吧！”价格是12345元。",
  "昨晚下了一場雨，臺灣的電腦與圖書館都關門了。",
  "昨日の夜は雨が降っていたので、家でゆっくり本を読みました。カタカナ・ひらがな・漢字ー々〆ヶ。",
  "ｶﾀｶﾅ ﾊﾝｶｸ ＡＢＣ　１２３４　ｆｕｌｌ",
  "어제 밤에 비가 와서 집에서 책을 읽었습니다. 가격은 12,345원입니다. ㅋㅋㅋ ㅎㅎ",
  "Chiều nay 5pm meeting với team ở 渋谷, nhớ mang laptop nhé 🙏🏽🎉",
  "La naïve façade: cœur, Œuvre, ﬁancé, ĳsbeer, Ǆamija ǅamija ǆamija, ŉ.",
];

const code = [
  "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(\"i =\", i)\n\t}\n}\n",
  "def mean(xs):\n    \"\"\"Return the mean.\"\"\"\n    if not xs:\n        return None\n    return sum(xs) / len(xs)  # floats\n",
  "const el = document.querySelector('#app > .item:nth-child(2)');\nel?.addEventListener('click', async () => { await fetch(`/api/${id}?q=1&r=2`); });",
  "SELECT o.id, COUNT(*) AS n FROM orders o LEFT JOIN items i ON i.order_id = o.id WHERE o.created_at >= '2024-01-01' GROUP BY o.id HAVING COUNT(*) > 3;",
  "#include <stdio.h>\r\n\r\nint main(void)\r\n{\r\n    printf(\"%d\\n\", 0xDEADBEEF);\r\n    return 0;\r\n}\r\n",
  "fn parse<'a>(s: &'a str) -> Result<Vec<&'a str>, Error> { s.split(',').map(|x| Ok(x.trim())).collect() }",
  "<!DOCTYPE html>\n<html lang=\"en\"><head><title>x &amp; y</title></head>\n<body>\n\t<p class=\"a b\">It's &nbsp;ok</p>\n</body></html>\n",
  "{\"id\":123456789,\"name\":\"Müller\",\"tags\":[\"a\",\"b\",null],\"nested\":{\"x\":-1.5e+10,\"y\":true},\"path\":\"C:\\\\temp\\\\new\"}",
  "[\n  {\n    \"key\": \"value\",\n    \"list\": [1, 2, 3, 1000, 20000, 300000]\n  }\n]\n",
  "---\nname: build\non:\n  push:\n    branches: [ main ]\njobs:\n  test:\n    runs-on: x\n    steps:\n      - run: |\n          go test ./...\n",
  "| name | count | share |\n|------|------:|:-----:|\n| a    |    12 |  3.4% |\n| bb   |  1234 | 96.6% |\n",
  "# Title\n\n* one\n* two\n    * nested\n\n```sh\n$ ls -la /usr/local/bin | grep -v '^d' > out.txt 2>&1\n```\n\n> quote\n\n[link](./a/b/c.md#frag)\n",
  "diff --git a/x.go b/x.go\n@@ -1,7 +1,9 @@\n-old line\n+new line\n \tcontext\n",
  "HTTPServerURLParserXMLHttpRequest getHTTPResponseCode parseJSONtoXMLv2 snake_case_name SCREAMING_SNAKE kebab-case-name iPhoneXSMax",
  "2024-03-14T15:09:26.535Z ERROR [worker-7] conn=0x7ffd1a2b dur=12.345ms path=/v1/users/42?page=3 status=500\n",
  "6f1ed002-ab5d-4bd8-9e1c-1b5c2a8f7a10 d41d8cd98f00b204e9800998ecf8427e",
  "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==",
  "\\frac{\\partial f}{\\partial x} = \\sum_{i=0}^{\\infty} \\alpha_i x^{i}",
  "a/b//c///d////\n/e/\r\n//\n\n// comment\n/* block */\n", "x = y /\n/\n z", "path/\n\npath//\r\n\r\n",
];

const contractions = [
  "I'm I'll I'd I've it's don't we're", "I'M I'LL I'D I'VE IT'S DON'T WE'RE", "I'm'll'd've's't're", "'s't're've'm'll'd",
  "'S'T'RE'VE'M'LL'D", "'sx 'tx 'rex 'vex 'mx 'llx 'dx", "''s '''t", "'r 'v 'l 'L 'R 'e", "'lL 'Ll 'rE 'vE", "x's1 x's's x's'", "1's 2't",
  "!'s ?'re .'ll", " 's  't\n're\t've", "it’s don’t we’re", "'ſ", "it'ſ", "it'ſt", "IT'ſ x", "'ſ'ſ", "x'ſ1", "e'ſ'res", "d'ſ'VES", "x'ſ'ms", "A'ſ'll", "a'ſ'ſ's", "ſ'res", "x'ſs", " 'ſ", "!'ſ", "'K's", "中's 中'll中", "é's É'S",
  "a\u0301's", "\u0301's", ".\u0301's", "..\u0301'll", "Ǆ's ǅ's", "ʰ's", "'sS 'Ss", "o'clock rock'n'roll O'Reilly y'all'd've", "'d'd'd'd", "'T'WAS 'twas 'tis",
  "HE'LL She'LL tHEY'll", "AB'sCD ab'sCD Ab'sCd", "x'll1ll x're2", "it'S not'That", "’s‘t", "`s ´t", "'\u200bs", "' s ' t", "'\ns",
];

const spaces = [" ", "  ", "\n", "\n\n", "\n\n\n", "\r", "\r\n", "\r\n\r\n", "\t", "\t\t", " \n", "\n ", " \n ", "\n \n", "\n    \n\n", "\n\n \n1", " \t \n \t x",
  "\u0085", "\u00a0", "\u1680", "\u2000", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u180e", "\u200b", "\u200d", "\ufeff", "\u2060",
  "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x00", "\x7f", "\x80", "\u00ad"];

const unusual = [
  "👨‍👩‍👧‍👦", "👩🏽‍💻👨🏿‍🚀", "🏳️‍🌈🏴‍☠️", "🇩🇪🇫🇷🇯🇵", "1️⃣2️⃣#️⃣", "☺️☺︎", "🤖🦄🧠🥳🫠🪿🫨", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️‍🔥",
  "e\u0301", "\u0301e", "Z\u0351\u036b\u0343a\u0321l\u033bg\u0317o\u0362", "o\u0302\u0323\u0301", "\u20dd\u20e3", "क्‍ष", "नि", "각", "\u1100\u1161\u11a8",
  "\u{1D400}\u{1D401} \u{1D7D8}\u{1D7D9}", "ⅣⅫⅳ", "①②③④⑤", "½¾⅓", "²³¹", "٠١٢٣٤٥", "०१२३४", "一二三四", "１２３４５", "𝟏𝟐𝟑𝟒", "𒐕𒐖𒐗𒐘", "\u{10A40}\u{10A41}",
  "\u1C89\u1C8A", "\uA7CB\uA7CC\uA7CD\uA7DA\uA7DB\uA7DC", "\u{10D40}\u{10D41}\u{10D50}\u{10D70}", "\u{13460}\u{13461}", "\u{1E5D0}\u{1E5F1}\u{1E5F2}", "\u{16D40}\u{16D70}", "\u{105C0}", "\u{11380}\u{113B8}\u{113E1}", "\u{1CCF0}\u{1CCF9}", "\u0897", "\u{10EC2}\u{10EFC}", "\u{1FAE9}\u{1FADC}",
  "\u{2EBF0}\u{2EE5D}", "\u{2FFFC}\u31EF", "\u{323B0}\u{33479}", "\u{16EA0}\u{16EBB}", "\u{16FF2}\uA7CE\uA7D2\uA7D4\uA7F1",
  "\ue000\uf8ff", "\u{F0000}\u{FFFFD}", "\u{100000}\u{10FFFD}", "\u0378\u0379", "\ufdd0\ufffe\uffff", "\u{1FFFE}\u{10FFFF}", "\u{50000}", "\ufffd", "\ufffd\ufffd\ufffd",
  "\u0600\u06dd\u070f", "\u202a\u202b\u202c\u202e\u2066\u2069", "\ufff9\ufffa\ufffb", "\u{E0001}\u{E007F}", "\u00aaº", "ˈˌːʲʷ", "ªbº", "ǅǈǋᾈ", "ꙮ", "﷽", "ﬀﬁﬂﬃ", "İıŞş", "ẞß", "K\u212aÅ", "Σσς", "ⓐⒶ🄰🅰", "ͅ", "ั", "々〇〻", "〡〢〣", "亚洲AV", "x亚洲AVs", "中文APP", "ㄱㄴㄷ", "ㆠㆡ", "ꀀꀁ", "ꥠ", "𐌀𐍈𐐀𐐨", "𓀀𓂀", "𒀀", "𠀀𠮷𪚥𰻞", "㐀㐁", "豈更",
];

const specials = [
  "<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|><|fim_middle|><|fim_suffix|>", "<|im_start|>user\nHi<|im_end|>\n", "a<|endoftext|>b", "<|endoftext|><|endoftext|>",
  "<|start|>assistant<|channel|>analysis<|message|>text<|end|>", "<|return|> <|call|>", "<|endoftext", "|endoftext|>", "< |endoftext| >", "<|ENDOFTEXT|>", "<|reserved_200000|>",
];

module.exports = { prose, code, contractions, spaces, unusual, specials };
