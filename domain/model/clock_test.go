package model_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain/model"
)

// firedAt returns the time that a timer fired with; the zero time if it has not.
func firedAt(fired <-chan time.Time) time.Time {
	select {
	case at := <-fired:
		return at
	default:
		return time.Time{}
	}
}

func TestClock_StandsStillUntilAdvanced(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	fired, _ := clock.NewTimer(time.Minute)
	clock.Advance(59 * time.Second)
	equal(t, firedAt(fired), time.Time{})
	clock.Advance(time.Second)
	equal(t, firedAt(fired), noon.Add(time.Minute))
	equal(t, clock.Now(), noon.Add(time.Minute))
	clock.Advance(time.Hour)
	equal(t, firedAt(fired), time.Time{})
}

func TestClock_FiresEachTimerWithItsDeadline(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	late, _ := clock.NewTimer(3 * time.Second)
	early, _ := clock.NewTimer(time.Second)
	middle, _ := clock.NewTimer(2 * time.Second)
	clock.Advance(time.Minute)
	equal(t, firedAt(early), noon.Add(time.Second))
	equal(t, firedAt(middle), noon.Add(2*time.Second))
	equal(t, firedAt(late), noon.Add(3*time.Second))
	equal(t, clock.Now(), noon.Add(time.Minute))
}

func TestClock_TimerWithoutADelayFiresAtOnce(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	for _, delay := range []time.Duration{0, -time.Second} {
		fired, stop := clock.NewTimer(delay)
		equal(t, firedAt(fired), noon)
		stop()
	}
}

func TestClock_StoppedTimerNeverFires(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	stopped, stop := clock.NewTimer(time.Second)
	other, _ := clock.NewTimer(time.Second)
	stop()
	stop()
	clock.Advance(time.Minute)
	equal(t, firedAt(stopped), time.Time{})
	equal(t, firedAt(other), noon.Add(time.Second))
}

func TestClock_NextTellsTheDistanceToTheNextTimer(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	if _, some := clock.Next(); some {
		t.Error("a clock without timers knows a next one")
	}
	clock.NewTimer(time.Minute)
	clock.NewTimer(time.Second)
	clock.Advance(400 * time.Millisecond)
	d, some := clock.Next()
	equal(t, some, true)
	equal(t, d, 600*time.Millisecond)
}

func TestClock_CannotBeTurnedBack(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the clock went back")
		}
	}()
	model.NewClock(noon).Advance(-time.Second)
}

func TestClock_FiresEveryTimerHoweverManyUseIt(t *testing.T) {
	t.Parallel()
	clock := model.NewClock(noon)
	var users sync.WaitGroup
	for i := range 50 {
		fired, _ := clock.NewTimer(time.Duration(i) * time.Second)
		users.Go(func() { <-fired })
	}
	// Only when all the timers stand: they count from the time of the clock.
	for range 50 {
		users.Go(func() { clock.Advance(time.Second) })
		users.Go(func() {
			_, stop := clock.NewTimer(time.Hour)
			stop()
		})
	}
	users.Wait()
	equal(t, clock.Now(), noon.Add(50*time.Second))
}
