package facts

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A Kind is a kind of conversation, with the window that its model has.
type Kind struct {
	Name   string
	Window int
	Turns  int // answers
	write  func(*script)
}

// Talk returns a conversation of the kind.
func (k Kind) Talk(seed uint64) Talk {
	s := newScript(seed, k.Turns)
	k.write(s)
	return s.Talk
}

// Kinds returns the kinds of the tables.
func Kinds() []Kind {
	return []Kind{
		{"chat, 600 turns", 32_000, 600, (*script).chat},
		{"utterances, 600 turns", 32_000, 600, (*script).utterances},
		{"support with a policy", 16_000, 300, (*script).support},
		{"research, claims not noted", 128_000, 400, (*script).research},
		{"rules, some revoked", 32_000, 400, (*script).rules},
		{"Chinese", 16_000, 400, (*script).chinese},
		{"500 steps, no user", 100_000, 500, (*script).steps},
		{"images", 32_000, 250, (*script).images},
		{"agent in 8k", 8_000, 250, (*script).smallAgent},
		{"notifications", 16_000, 400, (*script).notifications},
		{"values that change", 16_000, 400, (*script).values},
	}
}

// one returns a new fact in about one of n calls, as a list.
func (s *script) one(n int) []string {
	if s.IntN(n) > 0 {
		return nil
	}
	f := s.fact()
	s.learn(f)
	return []string{f}
}

// user adds a message of the user, who asks for what is needed next.
func (s *script) user(text string) {
	if s.asked() {
		text += " What was it again that we said about this?"
	}
	s.add(convo.User(text))
}

// call makes a step: an answer with a call, and the result.
func (s *script) call(said, tool, argument, result string) {
	s.calls++
	c := convo.ToolCall{ID: fmt.Sprintf("call_%d", s.calls), Name: tool, Arguments: fmt.Sprintf(`{"for":%q}`, argument)}
	s.answer(said, c)
	s.add(convo.Result(c, result))
}

// chat has a user who writes paragraphs. Of the facts, the user says two of three.
func (s *script) chat() {
	s.add(convo.System(s.prose(150)))
	for s.turn < s.turns {
		s.user(s.prose(s.between(30, 100), s.one(4)...))
		s.answer(s.prose(s.between(60, 200), s.one(8)...))
	}
}

// utterances has a user who types short lines, and sometimes pastes a page.
func (s *script) utterances() {
	s.add(convo.System(s.prose(150)))
	for s.turn < s.turns {
		fact := strings.Join(s.one(3), "")
		text := s.spoken(s.between(3, 20), fact)
		if s.IntN(40) == 0 {
			text += "\n\n" + s.prose(s.between(150, 400))
		}
		s.user(text)
		s.answer(s.prose(s.between(80, 220)))
	}
}

// support has customers whose records are looked up, and a long policy. Facts are said by
// the customers, stand in records, and are promised.
func (s *script) support() {
	s.add(convo.System("You follow this policy. " + s.prose(1200)))
	for s.turn < s.turns {
		s.user(s.prose(s.between(25, 80), s.one(3)...))
		for range s.IntN(3) {
			if s.turn < s.turns-1 {
				s.call("I look that up.", "lookup", pick(s.words, people), s.prose(s.between(100, 350), s.one(3)...))
			}
		}
		s.answer(s.prose(s.between(40, 120), s.one(6)...))
	}
}

// research has an agent that reads sources and does not note what they claim.
func (s *script) research() {
	s.add(convo.System(s.prose(400)))
	for s.turn < s.turns {
		s.user("Look into it further. " + s.prose(40))
		for n := 0; n < 39 && s.turn < s.turns-1; n++ {
			var claims []string
			for range s.between(0, 2) {
				c := s.claim()
				s.learn(c)
				claims = append(claims, c)
			}
			s.call("I read on.", "fetch", pick(s.words, people)+" on "+pick(s.words, objects), s.prose(s.between(300, 1400), claims...))
		}
		s.answer("I have not finished. " + s.prose(80))
	}
}

// rules has a user who sets rules and revokes two of five. Each is needed three times.
func (s *script) rules() {
	s.add(convo.System(s.prose(200)))
	type standing struct {
		*slot
		revoked string
		until   int
	}
	var all []standing
	for s.turn < s.turns {
		var said []string
		if s.IntN(5) == 0 {
			rule, revoked := s.rule()
			r := standing{s.learn(rule), revoked, 0}
			s.need(r.slot)
			s.need(r.slot)
			if s.IntN(5) < 2 {
				r.until = s.turn + s.between(10, 80)
			}
			all, said = append(all, r), append(said, rule)
		}
		for _, r := range all {
			if r.until > 0 && r.until == s.turn {
				s.replace(r.slot, r.revoked)
				said = append(said, r.revoked)
			}
		}
		s.user(s.prose(s.between(20, 80), said...))
		s.answer(s.prose(s.between(80, 250)))
	}
}

// chinese is a chat in Chinese.
func (s *script) chinese() {
	s.add(convo.System(s.han(200)))
	fact := func(n int) []string {
		if s.IntN(n) > 0 {
			return nil
		}
		f := s.hanFact()
		s.learn(f)
		return []string{f}
	}
	for s.turn < s.turns {
		text := s.han(s.between(30, 120), fact(3)...)
		if s.asked() {
			text += "我们之前是怎么说的？"
		}
		s.add(convo.User(text))
		s.answer(s.han(s.between(60, 250), fact(8)...))
	}
}

// steps has an agent that works alone after the first message. It notes a third of the
// facts, and the others stand in results.
func (s *script) steps() {
	s.add(convo.System(s.prose(800)))
	var task []string
	for range 6 {
		f := s.fact()
		slot := s.learn(f)
		s.need(slot)
		s.need(slot)
		task = append(task, f)
	}
	s.user(s.prose(120, task...))
	for s.turn < s.turns-1 {
		said := "Next."
		if fact := s.one(5); fact != nil {
			said = s.prose(10, fact...)
		}
		s.call(said, "run", pick(s.words, nouns), s.prose(s.between(400, 1800), s.one(3)...))
	}
	s.answer("All is done.")
}

// picture is the least that is an image.
var picture = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))

// images has a user who sends pictures, and says something about each.
func (s *script) images() {
	s.add(convo.System(s.prose(150)))
	for s.turn < s.turns {
		text := s.prose(s.between(10, 30), s.one(3)...)
		var parts []convo.Part
		if s.IntN(2) == 0 {
			parts = append(parts, convo.Media{MIME: "image/png", Data: picture})
		}
		s.add(convo.User(text, parts...))
		s.answer(s.prose(s.between(20, 80), s.one(5)...))
	}
}

// smallAgent has a user who speaks at each tenth step of an agent.
func (s *script) smallAgent() {
	s.add(convo.System(s.prose(300)))
	for s.turn < s.turns {
		s.user(s.prose(30, s.one(1)...))
		for n := 0; n < 9 && s.turn < s.turns-1; n++ {
			said := s.prose(10, s.one(8)...)
			s.call(said, "run", s.sentence(), s.prose(s.between(60, 350), s.one(4)...))
		}
		s.answer(s.prose(40))
	}
}

// notifications has three notices of the host in the user's role for each message that a
// person wrote. Facts are only in the latter.
func (s *script) notifications() {
	s.add(convo.System(s.prose(200)))
	for s.turn < s.turns {
		if s.IntN(4) > 0 {
			s.add(convo.User(fmt.Sprintf("<task-notification>\n<task-id>%d</task-id>\n<status>completed</status>\n<summary>%s</summary>\n</task-notification>", s.turn, s.prose(s.between(60, 180)))))
			s.answer("Noted. " + s.prose(20))
			continue
		}
		s.user(s.prose(s.between(20, 60), s.one(1)...))
		s.answer(s.prose(s.between(60, 160)))
	}
}

// values has 30 amounts, of which one gets another value in each third turn.
func (s *script) values() {
	s.add(convo.System(s.prose(200)))
	type amount struct {
		*slot
		of string
	}
	var all []amount
	for s.turn < s.turns {
		var said []string
		if s.IntN(3) == 0 {
			a := amount{of: s.fresh(func() string { return "the rate of " + pick(s.words, people) + " for the " + pick(s.words, objects) })}
			if len(all) >= 30 {
				a = all[s.IntN(len(all))]
			}
			value := s.fresh(func() string { return a.of + " is now " + s.number() + " " + pick(s.words, money) })
			if a.slot == nil {
				a.slot = s.learn(value)
				all = append(all, a)
			} else {
				s.replace(a.slot, value)
				s.need(a.slot)
			}
			said = append(said, value)
		}
		s.user(s.prose(s.between(20, 60), said...))
		s.answer(s.prose(s.between(60, 180)))
	}
}
