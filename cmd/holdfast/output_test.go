package main

import (
	"bytes"
	"flag"
	"testing"

	"github.com/urfave/cli/v2"
)

type fruit struct {
	Name string `json:"name"`
	Note string `json:"note"`
}

// printed is what a command prints in a format.
func printed(t *testing.T, format string, write func(c *cli.Context) error) string {
	t.Helper()
	var out bytes.Buffer
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.String(flagOutput, format, "")
	if err := write(cli.NewContext(&cli.App{Writer: &out}, set, nil)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOutput_AListInEachFormat(t *testing.T) {
	fruits := []fruit{{"fig", "two\nlines"}, {"pear", "<b> & c"}}
	for format, want := range map[string]string{
		formatTable: "NAME  NOTE\nfig   two lines\npear  <b> & c\n",
		formatJSON: `{
  "items": [
    {
      "name": "fig",
      "note": "two\nlines"
    },
    {
      "name": "pear",
      "note": "<b> & c"
    }
  ]
}
`,
		formatLines: "{\"name\":\"fig\",\"note\":\"two\\nlines\"}\n{\"name\":\"pear\",\"note\":\"<b> & c\"}\n",
	} {
		got := printed(t, format, func(c *cli.Context) error {
			return printItems(c, fruits,
				column[fruit]{"NAME", func(f fruit) string { return f.Name }},
				column[fruit]{"NOTE", func(f fruit) string { return f.Note }},
			)
		})
		if got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
}

func TestOutput_OneThingInEachFormat(t *testing.T) {
	for format, want := range map[string]string{
		formatTable: "name  fig\nnote  two\n      lines\n",
		formatJSON:  "{\n  \"name\": \"fig\",\n  \"note\": \"two\\nlines\"\n}\n",
		formatLines: "{\"name\":\"fig\",\"note\":\"two\\nlines\"}\n",
	} {
		got := printed(t, format, func(c *cli.Context) error {
			return printRecord(c, fruit{"fig", "two\nlines"}, fact{"name", "fig"}, fact{"note", "two\nlines"})
		})
		if got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
}
