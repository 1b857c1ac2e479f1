package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// style is what a line is, which a colour can show.
type style int

const (
	stylePlain style = iota
	styleHead
	styleGood
	styleBad
)

// paint shows a line in its style.
type paint func(as style, text string) string

func plainPaint(_ style, text string) string { return text }

func colourPaint(as style, text string) string {
	code := map[style]string{styleHead: "1", styleGood: "32", styleBad: "1;31"}[as]
	if code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

type topLine struct {
	style style
	text  string
}

// topSection is a list: a heading, and a row for each item.
type topSection struct {
	heading string
	rows    []string
}

// leastRoom is what a list needs to say anything: an empty line, its heading and a row.
const leastRoom = 3

func newSection[T any](items []T, columns ...column[T]) topSection {
	var drawn strings.Builder
	table := tabwriter.NewWriter(&drawn, 0, 0, 2, ' ', 0)
	for i, column := range columns {
		if i > 0 {
			fmt.Fprint(table, "\t")
		}
		fmt.Fprint(table, printable(column.name))
	}
	for _, item := range items {
		for i, column := range columns {
			fmt.Fprint(table, []string{"\n", "\t"}[min(i, 1)], printable(column.cell(item)))
		}
	}
	_ = table.Flush() // Into memory: it cannot fail.
	lines := strings.Split(drawn.String(), "\n")
	return topSection{heading: lines[0], rows: lines[1:]}
}

// wants is how many lines it takes to show all of it.
func (s topSection) wants() int { return leastRoom - 1 + len(s.rows) }

// within is as much of it as so many lines show, and how much is missing.
func (s topSection) within(lines int) []topLine {
	drawn := []topLine{{}, {styleHead, s.heading}}
	shown := len(s.rows)
	if s.wants() > lines {
		shown = max(lines-leastRoom, 0)
	}
	for _, row := range s.rows[:shown] {
		drawn = append(drawn, topLine{text: row})
	}
	if missing := len(s.rows) - shown; missing > 0 {
		drawn = append(drawn, topLine{text: fmt.Sprintf("… %d more", missing)})
	}
	return drawn
}

// shareRoom gives each list its share of the lines, the first ones first: a line at a time to each
// that wants more, so that a long list does not push out the others. A list that would show nothing
// gets none. Without a bound, below 0, each gets what it wants.
func shareRoom(room int, sections []topSection) []int {
	fit := len(sections)
	if room >= 0 {
		fit = min(fit, room/leastRoom)
	}
	shares := make([]int, fit)
	for i := range shares {
		shares[i] = leastRoom
		room -= leastRoom
	}
	for given := true; given && room != 0; {
		given = false
		for i := range shares {
			if shares[i] < sections[i].wants() && room != 0 {
				shares[i]++
				room--
				given = true
			}
		}
	}
	return shares
}
