package main

// A source is a set of files of one package, all of the same class and form.
type source struct {
	class string // the class of the text; each class has the same weight in the fit
	dir   string // relative to the directory of packages
	exts  string // file extensions, separated by spaces; "" means names without one
	form  form
}

// A form is the format of a file, from which the text is extracted.
type form int

const (
	plain    form = iota
	markup        // HTML and XML: the text between the tags
	manual        // troff: the text without the macros
	messages      // the values of a JSON object
	catalog       // the translations of a GNU .mo file
	fluent        // the messages of a Fluent file
)

// prose lists the classes of natural language, each with the names that packages
// use for its languages.
var prose = []struct{ class, codes string }{
	{"en", "en C en-US en_US"},
	{"de", "de de_DE de-DE"},
	{"fr", "fr fr_FR fr-FR"},
	{"es", "es es_ES es-ES"},
	{"it", "it it_IT it-IT"},
	{"pt", "pt pt-BR pt_BR pt-br"},
	{"pl", "pl pl_PL pl-PL"},
	{"nl", "nl nl_NL nl-NL"},
	{"sv", "sv sv_SE sv-SE"},
	{"da-nb", "da da_DK da-DK nb nb_NO nb-NO nn"},
	{"cs", "cs cs_CZ cs-CZ"},
	{"hu", "hu hu_HU hu-HU"},
	{"ro", "ro ro_RO ro-RO"},
	{"fi", "fi fi_FI"},
	{"tr", "tr tr_TR tr-TR"},
	{"vi", "vi vi_VN vi-VN"},
	{"id", "id id_ID id-ID"},
	{"ca-gl", "ca ca_ES ca-ES gl gl_ES"},
	{"lt-lv-et", "lt lt_LT lv et"},
	{"hr-sl-sk", "hr hr-HR sl sl_SI sk sk_SK sh bs"},
	{"sw-tl-ms", "sw tl ms ms_MY jv su ceb ilo yo ig ha so af"},
	{"az-uz-sq", "az uz sq eu is is_IS cy ga eo la oc"},
	{"ru", "ru ru_RU ru-RU"},
	{"uk", "uk"},
	{"be", "be be-tarask"},
	{"bg-sr-mk", "bg bg_BG sr sr-ec sr_RS mk mk_MK"},
	{"kk-ky-tt", "kk kk-cyrl ky tt-cyrl ba sah cv"},
	{"mn", "mn bxr tyv"},
	{"tg", "tg tg-cyrl ce os"},
	{"el", "el el_GR el-GR"},
	{"ar", "ar ary arz ar-MA"},
	{"fa", "fa fa_IR fa-IR"},
	{"ur-ps", "ur ps sd ckb ug-arab ug_CN"},
	{"he", "he he_IL"},
	{"yi", "yi"},
	{"hi", "hi hi_IN hi-in"},
	{"mr", "mr"},
	{"ne", "ne ne-np ne_NP mai awa dty"},
	{"bn", "bn bn_BD as"},
	{"gu", "gu"},
	{"pa", "pa pa_IN"},
	{"or", "or"},
	{"ta", "ta ta_IN"},
	{"te", "te"},
	{"kn", "kn tcy"},
	{"ml", "ml"},
	{"si", "si si_LK"},
	{"th", "th"},
	{"lo", "lo"},
	{"km", "km"},
	{"my", "my"},
	{"bo", "bo dz"},
	{"ka", "ka ka_GE"},
	{"hy", "hy hyw hy-am"},
	{"am", "am ti"},
	{"dv", "dv"},
	{"zh", "zh-CN zh-cn zh_CN zh-hans"},
	{"zh-tw", "zh-TW zh-tw zh_TW zh-hant zh_HK"},
	{"lzh-yue", "lzh yue gan-hant wuu"},
	{"ja", "ja ja_JP ja-JP"},
	{"ko", "ko ko_KR ko-KR"},
}

// places lists where packages keep the text of a language. "*" stands for the
// name of the language, and "+" for the name in lower case. Missing files are
// skipped.
var places = []source{
	{"", "libreoffice-help-+/usr/share/libreoffice/help/*", "html", markup},
	{"", "debian-reference-+/usr/share/debian-reference", "html", markup},
	{"", "debian-handbook/usr/share/doc/debian-handbook/html/*", "html", markup},
	{"", "installation-guide-amd64/usr/share/doc/installation-guide-amd64/*", "html", markup},
	{"", "gnome-user-docs/usr/share/help/*", "page", markup},
	{"", "manpages-+/usr/share/man/*", "gz", manual},
	{"", "manpages-pt-br/usr/share/man/*", "gz", manual},
	{"", "manpages-zh/usr/share/man/*", "gz", manual},
	{"", "fortunes-+/usr/share/games/fortunes", "", plain},
	{"", "dokuwiki/usr/share/dokuwiki/inc/lang/*", "txt", plain},
	{"", "firefox-esr-l10n-+/xpi", "ftl", fluent},
	{"", "freeciv-data/usr/share/locale/*", "mo", catalog},
	{"", "wordpress-l10n/usr/share/wordpress/wp-content/languages/*.mo", "mo", catalog},
	{"", "wordpress-l10n/usr/share/wordpress/wp-content/languages/admin-*.mo", "mo", catalog},
	{"", "mediawiki/usr/share/mediawiki/languages/i18n/*.json", "json", messages},
}

// code lists the sources of code, data and English text.
var code = []source{
	{"en", "fortunes/usr/share/games/fortunes", "", plain},
	{"en-books", "anarchism/usr/share/doc/anarchism/html", "html", markup},
	{"en-manual", "perl-doc/usr/share/perl", "pod", plain},
	{"en-manual", "git-doc/usr/share/doc/git-doc", "txt", plain},
	{"go", "go/cli", "go", plain},
	{"go", "go/prometheus", "go", plain},
	{"typescript", "npm-typescript", "d.ts", plain},
	{"typescript", "npm-types-node", "ts", plain},
	{"typescript", "npm-react-native", "ts tsx", plain},
	{"typescript", "npm-element-plus", "d.ts vue", plain},
	{"javascript", "npm-webpack", "js", plain},
	{"javascript", "npm-react-native", "js jsx", plain},
	{"javascript", "npm-express", "js", plain},
	{"javascript", "npm-date-fns", "js", plain},
	{"minified", "npm-lodash", "min.js", plain},
	{"minified", "npm-bootstrap", "min.js min.css", plain},
	{"minified", "npm-vue", "prod.js", plain},
	{"minified", "npm-react-dom", "min.js production.js", plain},
	{"python", "sqlmap", "py", plain},
	{"python", "python3-django", "py", plain},
	{"rust", "rust-src/usr/src/rustc-1.63.0/library", "rs", plain},
	{"rust", "rust-src/usr/src/rustc-1.63.0/compiler", "rs", plain},
	{"c", "nginx-dev", "h c", plain},
	{"c", "googletest", "cc h", plain},
	{"c", "npm-react-native", "cpp h mm m c", plain},
	{"java", "npm-react-native", "java", plain},
	{"swift-kotlin", "npm-react-native", "kt swift kts gradle", plain},
	{"swift-kotlin", "npm-capacitor-ios", "swift", plain},
	{"php", "phpmyadmin", "php", plain},
	{"php", "mediawiki/usr/share/mediawiki/includes", "php", plain},
	{"ruby", "libruby3.1", "rb", plain},
	{"ruby", "npm-react-native", "rb", plain},
	{"lua", "minetest-data", "lua", plain},
	{"shell", "go", "sh bash", plain},
	{"shell", "rust-src", "sh", plain},
	{"shell", "npm-react-native", "sh", plain},
	{"shell", "nginx-dev/usr/share/nginx/src", "configure unix sources make", plain},
	{"sql", "mediawiki", "sql", plain},
	{"sql", "phpmyadmin", "sql", plain},
	{"css", "npm-bootstrap", "scss css", plain},
	{"css", "npm-element-plus", "scss", plain},
	{"css", "mediawiki/usr/share/mediawiki/resources", "less css", plain},
	{"html", "git-doc", "html", plain},
	{"html", "debian-reference-en", "html", plain},
	{"html", "libreoffice-help-de", "html", plain},
	{"xml", "gnome-user-docs/usr/share/help/C", "page xml", plain},
	{"xml", "npm-react-native", "xml plist", plain},
	{"yaml", "go", "yml yaml", plain},
	{"yaml", "rust-src", "yml toml", plain},
	{"markdown", "go/hugo", "md", plain},
	{"markdown", "go/prometheus", "md", plain},
	{"markdown", "go/cli", "md", plain},
	{"markdown", "npm-webpack", "md", plain},
	{"markdown", "rust-src", "md", plain},
	{"zh", "npm-antd", "md", plain},
	{"json", "npm-react-native", "json", plain},
	{"json", "npm-webpack", "json", plain},
	{"json", "npm-antd", "json", plain},
	{"json", "go", "json", plain},
	{"json", "mediawiki/usr/share/mediawiki/languages/i18n", "en.json de.json ja.json ru.json ar.json", plain},
	{"terminal", "rust-src", "stderr stdout", plain},
	{"diff", "go", "diff", plain},
}
