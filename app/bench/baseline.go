package bench

// baseline is the trial of a scenario that later ones are compared with.
type baseline struct {
	runs [][]Figure
}

// keep adds a run of the trial itself.
func (b *baseline) keep(figures []Figure) {
	b.runs = append(b.runs, figures)
}

// ratio is a figure of another trial divided by the median of the same figure here. There is
// none without both.
func (b *baseline) ratio(figures []Figure, name, title string) []Figure {
	value, known := valueOf(figures, name)
	base, ran := valueOf(medians(b.runs), name)
	if !known || !ran || base == 0 {
		return nil
	}
	return []Figure{{title, "", value / base}}
}

func valueOf(figures []Figure, name string) (float64, bool) {
	for _, figure := range figures {
		if figure.Name == name {
			return figure.Value, true
		}
	}
	return 0, false
}
