package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

// topView is all that a frame is drawn from.
type topView struct {
	reading  topReading
	interval time.Duration
	rates    *topRates     // Since the reading before; nil at the first one.
	lost     error         // Why the latest look failed; the reading is from before.
	lostFor  time.Duration // How old the reading is then.
}

// topRates are jobs a second.
type topRates struct {
	enqueued, claimed float64
}

// then is the view after another look.
func (v topView) then(found looked) topView {
	if found.err != nil {
		v.lost = found.err
		return v
	}
	next := topView{reading: found.reading, interval: v.interval}
	if enqueued, claimed, known := found.reading.Counters.Since(v.reading.Counters); known {
		next.rates = &topRates{enqueued, claimed}
	}
	return next
}

// mostAlso is how many findings are named below the first one.
const mostAlso = 3

// renderTop draws a frame of so many characters: what is wrong always, and of the lists as much as
// there is room for. A width and a height of 0 stand for no bound.
func renderTop(view topView, width, height int, paint paint) []string {
	lines := topHead(view)
	sections := topSections(view.reading.Top)
	room := -1
	if height > 0 {
		room = max(height-len(lines), 0)
	}
	for i, share := range shareRoom(room, sections) {
		lines = append(lines, sections[i].within(share)...)
	}
	if height > 0 {
		lines = lines[:min(height, len(lines))]
	}
	drawn := make([]string, len(lines))
	for i, line := range lines {
		drawn[i] = paint(line.style, cutTo(line.text, width))
	}
	return drawn
}

// topHead is what stands above the lists.
func topHead(view topView) []topLine {
	status := view.reading.Status
	title := "holdfast top  " + moment(view.reading.Counters.ReadAt)
	if view.interval > 0 {
		title += fmt.Sprintf("  every %s  q ends", view.interval)
	}
	lines := []topLine{{styleHead, title}}
	add := func(as style, name, text string) {
		lines = append(lines, topLine{as, fmt.Sprintf("%-8s %s", name, printable(text))})
	}
	if view.lost != nil {
		add(styleBad, "lost", "the database, for "+age(view.lostFor.Seconds())+"; what follows is from before")
		add(styleBad, "because", reasonOf(view.lost))
	}
	if view.reading.lag != nil {
		add(stylePlain, "read", "from "+view.reading.lag.String())
	}
	verdict := styleBad
	if status.Healthy {
		verdict = styleGood
	}
	add(verdict, "verdict", status.Verdict)
	add(stylePlain, "do", status.Do)
	for i, finding := range status.Findings {
		switch {
		case i == 0:
			add(stylePlain, "seen", finding.Seen)
		case i <= mostAlso:
			add(stylePlain, "also", finding.Means)
		case i == mostAlso+1:
			add(stylePlain, "also", fmt.Sprintf("%d more: holdfast status", len(status.Findings)-i))
		}
	}
	add(stylePlain, "workers", workforce(status.Workers))
	if view.rates != nil {
		add(stylePlain, "rates", fmt.Sprintf("%s/s enqueued, %s/s claimed since the look before", rate(view.rates.enqueued), rate(view.rates.claimed)))
	}
	if status.MoreQueues {
		add(stylePlain, "queues", fmt.Sprintf("only the first %d are looked at", len(status.Queues)))
	}
	return lines
}

// reasonOf is what a server said, if it was one that refused: the driver's words around that are long.
func reasonOf(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Message
	}
	return err.Error()
}

// topSections are the lists, the most important first.
func topSections(top support.Top) []topSection {
	sections := []topSection{
		newSection(worstFirst(top.Status.Queues), statusColumns()...),
		newSection(top.Workers, topWorkerColumns()...),
	}
	if top.HotKeys != nil {
		columns := keyColumns()
		columns[0].name = "KEY OF " + top.HotKeys.Queue
		sections = append(sections, newSection(top.HotKeys.Keys, columns...))
	}
	if top.Dead != nil {
		columns := groupColumns()
		columns[0].name = "DEAD OF " + top.Dead.Queue
		sections = append(sections, newSection(top.Dead.Items, columns...))
	}
	return slices.DeleteFunc(sections, func(s topSection) bool { return len(s.rows) == 0 })
}

// worstFirst puts those queues first in which somebody waits for longest.
func worstFirst(queues []domain.QueueLoad) []domain.QueueLoad {
	waits := func(q domain.QueueLoad) float64 {
		if q.OldestAgeSeconds == nil {
			return -1
		}
		return *q.OldestAgeSeconds
	}
	sorted := slices.Clone(queues)
	slices.SortStableFunc(sorted, func(a, b domain.QueueLoad) int {
		return cmp.Or(cmp.Compare(waits(b), waits(a)), cmp.Compare(b.Processing.Jobs, a.Processing.Jobs))
	})
	return sorted
}

func topWorkerColumns() []column[support.TopWorker] {
	milliseconds := func(number float64) string { return strconv.FormatFloat(number, 'f', 0, 64) + "ms" }
	return []column[support.TopWorker]{
		{"WORKER", func(w support.TopWorker) string { return w.ID }},
		{"STATUS", topWorkerStatus},
		{"IN FLIGHT", func(w support.TopWorker) string { return fmt.Sprintf("%d of %d", w.Says.InFlight, w.Says.Concurrency) }},
		{"CLAIM P99", func(w support.TopWorker) string { return milliseconds(w.Says.ClaimP99) }},
		{"HANDLE P99", func(w support.TopWorker) string { return milliseconds(w.Says.HandleP99) }},
		{"LAST SEEN", func(w support.TopWorker) string { return ago(seconds(w.SilenceSeconds)) }},
		{"QUEUES", func(w support.TopWorker) string { return strings.Join(w.Queues, " ") }},
	}
}

func topWorkerStatus(w support.TopWorker) string {
	if w.Status == domain.WorkerAlive && !w.Live {
		return "not seen"
	}
	return string(w.Status)
}

// printable is a text in one line, without what a terminal would take for an order: names of
// queues and keys, and errors, are other people's texts.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, oneLine(text))
}

// cutTo keeps a line within so many characters.
func cutTo(text string, width int) string {
	if runes := []rune(text); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
