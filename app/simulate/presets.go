package simulate

import (
	"context"
	"fmt"
	"strings"
)

// Preset is a story that can be played.
type Preset struct {
	Name  string
	About string

	scenes []scene
	lesson func(scenes []Scene) string
}

// scene is one telling of a story.
type scene struct {
	name string
	set  func(*stage) // Before anything happens.
	sum  func(*stage) (outcome []string)
}

// Presets lists the stories, in the order in which they are best watched.
func Presets() []Preset {
	return []Preset{twoWorkers(), crash(), pause(), rebalance(), hotKey()}
}

// UnknownError says that there is no such preset, and which there are.
type UnknownError struct {
	Name string
}

// Error names the presets that there are.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("preset %q is none of %s", e.Name, strings.Join(Names(), ", "))
}

// Names are those of the presets.
func Names() (names []string) {
	for _, preset := range Presets() {
		names = append(names, preset.Name)
	}
	return names
}

// Run plays a preset. The same seed gives the same report. UnknownError: there is no such
// preset. While it runs, nothing else in the program should: it takes the only processor.
func Run(ctx context.Context, name string, seed int64) (Report, error) {
	for _, preset := range Presets() {
		if preset.Name == name {
			return preset.play(ctx, seed)
		}
	}
	return Report{}, &UnknownError{name}
}

func (p Preset) play(ctx context.Context, seed int64) (Report, error) {
	rest, undo := alone()
	defer undo()
	report := Report{Preset: p.Name, Seed: seed, About: p.About}
	for _, each := range p.scenes {
		played, err := each.play(ctx, seed, rest)
		if err != nil {
			return Report{}, fmt.Errorf("simulate %s, %s: %w", p.Name, each.name, err)
		}
		report.Scenes = append(report.Scenes, played)
	}
	report.Lesson = p.lesson(report.Scenes)
	return report, nil
}

func (c scene) play(ctx context.Context, seed int64, rest *rest) (Scene, error) {
	s := newStage(seed, rest)
	c.set(s)
	if err := s.play(ctx); err != nil {
		return Scene{}, err
	}
	outcome := c.sum(s)
	s.counts.Waits = s.waitsOf(func(string) bool { return true })
	return Scene{Name: c.name, Events: s.events, Outcome: outcome, Counts: s.counts, byBuckets: s.tellBuckets}, nil
}

// plural counts things in words.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
