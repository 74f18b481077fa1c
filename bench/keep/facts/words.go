package facts

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// words draws texts. Two with the same seed draw the same.
type words struct {
	*rand.Rand
	used map[string]bool // facts
}

func newWords(seed uint64) *words {
	return &words{rand.New(rand.NewPCG(seed, 52)), map[string]bool{}}
}

var (
	people  = strings.Fields("Odile Tomas Priya Henrik Amara Lucio Greta Yusuf Nadia Bram Ilse Mateo Sunniva Kofi Petra Anselm Leila Dario Maud Rafael Tove Emeka Clara Jonas")
	objects = strings.Fields("ladder kettle lantern harness blanket typewriter canoe tripod accordion wheelbarrow projector toolbox samovar bicycle stroller globe suitcase telescope rug umbrella printer easel barometer crate")
	events  = strings.Fields("rehearsal inspection picnic auction lecture handover regatta fitting tasting christening excursion interview reunion vernissage workshop delivery concert hearing")
	places  = strings.Split("behind the boiler|under the back stairs|in the blue cupboard|above the garage door|beside the well|in the attic chest|next to the piano|inside the clay oven|on the lower shelf|beneath the mangle|at the far jetty|in the pantry tin", "|")
	days    = strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
	hours   = strings.Split("quarter past six|half past nine|ten to eleven|noon sharp|twenty past four|half past seven|quarter to two|five to three|midnight|ten past five", "|")
	foods   = strings.Fields("walnuts shellfish celery lentils mustard rye goat-cheese apricots fennel sesame buckwheat rhubarb")
	colors  = strings.Fields("ochre teal maroon ivory charcoal lilac turquoise olive amber cobalt coral slate")
	tens    = strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")
	ones    = strings.Fields("one two three four five six seven eight nine")
	money   = strings.Fields("francs crowns pounds guilders pesos zloty")
	nouns   = strings.Fields("question garden plan letter kitchen river weather journey village market story window meadow bridge cellar recipe window chapter harbour corner lesson summer neighbour message colour bottle ticket morning engine paper")
	adjs    = strings.Fields("quiet narrow early careful simple heavy bright ordinary distant gentle curious steady broad patient clumsy pleasant uneven sudden")
	pasts   = strings.Fields("described painted measured carried followed noticed repaired compared borrowed answered collected finished moved prepared opened counted")
	preps   = strings.Fields("near behind beyond along without before after around beneath through")
	fillers = strings.Split("and that was all of it|which took longer than usual|though nobody minded|as it often happens|so we left it there|because the day was short|and it can wait|if there is time for it|which seems fine to me|but only for a while", "|")
)

// leads begin a sentence with a fact.
var leads = strings.Split("And|Also,|By the way,|As it is,|Then|Besides,|It turns out that|It was settled that", "|")

func pick(w *words, list []string) string { return list[w.IntN(len(list))] }

// between returns a number from least to most.
func (w *words) between(least, most int) int { return least + w.IntN(most-least+1) }

// sentence returns a sentence that holds no fact.
func (w *words) sentence() string {
	who := "someone"
	if w.IntN(3) == 0 {
		who = pick(w, people)
	}
	s := fmt.Sprintf("%s %s the %s %s %s the %s %s", who, pick(w, pasts), pick(w, adjs), pick(w, nouns), pick(w, preps), pick(w, adjs), pick(w, nouns))
	if w.IntN(2) == 0 {
		s += ", " + pick(w, fillers)
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// prose returns sentences of about n words, with the facts among them.
func (w *words) prose(n int, facts ...string) string {
	var all []string
	for left := n; left > 0; {
		s := w.sentence()
		all = append(all, s)
		left -= strings.Count(s, " ") + 1
	}
	for _, f := range facts {
		at := w.IntN(len(all) + 1)
		all = append(all[:at], append([]string{pick(w, leads) + " " + f + "."}, all[at:]...)...)
	}
	return strings.Join(all, " ")
}

// spoken returns what a person types in a hurry: no capitals, few full stops.
func (w *words) spoken(n int, fact string) string {
	starts := strings.Split("ok|hm|yeah no|right so|wait|thanks|one more thing|sure|hey|fine", "|")
	text := pick(w, starts)
	if fact != "" {
		text += " " + pick(w, strings.Split("btw|just so you know|before i forget|also", "|")) + " " + fact
	}
	for strings.Count(text, " ") < n {
		text += " " + pick(w, strings.Split("and the|about that|with the|i mean the|maybe a|what of the|not the", "|")) + " " + pick(w, adjs) + " " + pick(w, nouns)
	}
	return text
}

// number returns a number in words.
func (w *words) number() string {
	hundreds := ""
	if w.IntN(2) == 0 {
		hundreds = pick(w, ones) + " hundred "
	}
	return hundreds + pick(w, tens) + "-" + pick(w, ones)
}

// fact returns a fact that is not drawn again. Most are in plain words.
func (w *words) fact() string {
	return w.fresh(func() string {
		who := pick(w, people)
		switch w.IntN(7) {
		case 0:
			return fmt.Sprintf("the %s of %s is kept %s", pick(w, objects), who, pick(w, places))
		case 1:
			return fmt.Sprintf("the %s with %s begins on %s at %s", pick(w, events), who, pick(w, days), pick(w, hours))
		case 2:
			return fmt.Sprintf("%s must not be served %s or %s", who, pick(w, foods), pick(w, foods))
		case 3:
			return fmt.Sprintf("the deposit of %s for the %s is %s %s", who, pick(w, objects), w.number(), pick(w, money))
		case 4:
			return fmt.Sprintf("%s would like the %s in %s and %s", who, pick(w, objects), pick(w, colors), pick(w, colors))
		case 5:
			return fmt.Sprintf("%s lends the %s to %s until %s", who, pick(w, objects), pick(w, people), pick(w, days))
		}
		return fmt.Sprintf("the receipt of %s for the %s is %c%d-%d", who, pick(w, objects), 'A'+w.IntN(26), w.between(100, 999), w.between(10, 99))
	})
}

// claim returns a finding as it stands in a source.
func (w *words) claim() string {
	return w.fresh(func() string {
		return fmt.Sprintf("the %s %s of %s was %s in %s of %s cases", pick(w, adjs), pick(w, objects), pick(w, people), pick(w, strings.Fields("unchanged halved confirmed refuted doubled overlooked")), w.number(), w.number())
	})
}

// rule returns a rule of the user, and what revokes it.
func (w *words) rule() (rule, revoked string) {
	rule = w.fresh(func() string {
		return fmt.Sprintf("never %s the %s of %s on a %s", pick(w, strings.Fields("mention quote lend move sell paint")), pick(w, objects), pick(w, people), pick(w, days))
	})
	return rule, "no longer in force is what I said about the " + strings.TrimPrefix(rule[strings.Index(rule, " the ")+1:], "the ")
}

// fresh returns what draw draws, if it is new.
func (w *words) fresh(draw func() string) string {
	for {
		if f := draw(); !w.used[f] {
			w.used[f] = true
			return f
		}
	}
}

var (
	hanPeople  = strings.Fields("林晓 周远 陈默 许薇 高原 沈岚 何川 罗茵 苏禾 邓凯 叶青 方舟 谢安 曹宁 陆遥 宋词")
	hanThings  = strings.Fields("梯子 水壶 灯笼 毛毯 打字机 三脚架 手风琴 推车 投影仪 工具箱 自行车 望远镜 地毯 雨伞 画架 气压表")
	hanPlaces  = strings.Fields("锅炉后面 楼梯下面 蓝色柜子里 车库门上方 水井旁边 阁楼箱子里 钢琴旁 陶炉里面 下层架子上 码头尽头")
	hanDays    = strings.Fields("星期一 星期二 星期三 星期四 星期五 星期六 星期天")
	hanHours   = strings.Fields("六点一刻 九点半 十一点差十分 正午 四点二十 七点半 两点差一刻 午夜")
	hanFoods   = strings.Fields("核桃 贝类 芹菜 扁豆 芥末 黑麦 杏子 茴香 芝麻 荞麦")
	hanVerbs   = strings.Fields("描述了 画了 量了 搬了 跟着 注意到 修好了 比较了 借走了 回答了 收集了 打开了")
	hanAdjs    = strings.Fields("安静的 狭窄的 简单的 沉重的 明亮的 普通的 遥远的 温和的 奇怪的 宽阔的")
	hanNouns   = strings.Fields("花园 计划 信件 厨房 河流 天气 旅程 村庄 市场 故事 窗户 桥梁 地窖 菜谱 港口 课程")
	hanFillers = strings.Fields("不过没有人在意 比平时久一些 所以就先这样 因为天色已晚 可以以后再说 有时间再看")
	hanDigits  = strings.Fields("一 二 三 四 五 六 七 八 九")
)

// han returns Chinese sentences of about n characters, with the facts among them.
func (w *words) han(n int, facts ...string) string {
	var all []string
	for left := n; left > 0; {
		s := "有人" + pick(w, hanVerbs) + pick(w, hanAdjs) + pick(w, hanNouns) + "，" + pick(w, hanFillers) + "。"
		all = append(all, s)
		left -= len([]rune(s))
	}
	for _, f := range facts {
		at := w.IntN(len(all) + 1)
		all = append(all[:at], append([]string{f + "。"}, all[at:]...)...)
	}
	return strings.Join(all, "")
}

// hanFact returns a fact in Chinese that is not drawn again.
func (w *words) hanFact() string {
	return w.fresh(func() string {
		who, what := pick(w, hanPeople), pick(w, hanThings)
		switch w.IntN(4) {
		case 0:
			return who + "的" + what + "放在" + pick(w, hanPlaces)
		case 1:
			return "和" + who + "见面改到" + pick(w, hanDays) + pick(w, hanHours)
		case 2:
			return who + "不能吃" + pick(w, hanFoods) + "和" + pick(w, hanFoods)
		}
		return who + "的" + what + "押金是" + pick(w, hanDigits) + "百" + pick(w, hanDigits) + "十" + pick(w, hanDigits) + "元"
	})
}
