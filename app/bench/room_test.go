package bench

import (
	"strings"
	"testing"
)

func TestRoom_TooLittleDiskIsASentenceThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	n := needs{jobs: 200_000, payload: 128}
	if err := n.checkDisk(100<<30, "/data"); err != nil {
		t.Errorf("100 GB are not enough: %v", err)
	}
	err := n.checkDisk(1<<28, "/data")
	if err == nil {
		t.Fatal("a quarter of a gigabyte is enough")
	}
	for _, words := range []string{"/data has 0.2 GB free", "are needed", "--jobs", "TMPDIR"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q: %v", words, err)
		}
	}
}

func TestRoom_EveryScenarioFitsAPrivateServer(t *testing.T) {
	t.Parallel()
	for _, size := range []Size{SizeSmall, SizeFull} {
		for _, s := range scenarios {
			for _, each := range s.trials(Options{Size: size, Payload: 128, Concurrency: 64}) {
				if wanted := each.needs.connections(); wanted > 190 {
					t.Errorf("%s, %s needs %d connections, and a private server has 200", s.name, each.name, wanted)
				}
				if wanted := each.needs.disk(); wanted > 64<<30 {
					t.Errorf("%s, %s asks for %s of disk", s.name, each.name, gigabytes(wanted))
				}
			}
		}
	}
}
