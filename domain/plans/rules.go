package plans

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"
)

// maxCost is the highest cost that the server may expect of a hot statement. At 100,000 it
// compiles one (JIT), for half a second, unless it is told not to.
const maxCost = 50_000

// To read a table of few pages is no mistake where nothing forbids it: it takes no longer than
// to look up the members of a set. When the table has grown, ANALYZE throws that plan away.
const (
	fewPages = 30
	lookUp   = 5 // For each member; the server reckons with 4 to 8.
)

// disabledCost is what servers before 18 add for each node that a setting forbids.
const disabledCost = 1e10

// grows are the tables whose size depends on what the product has done, not on how it is set
// up. Days of the archive have the archive's name and more.
var grows = []string{"inbox", "inbox_archive", "idempotency_keys", "handled", "fences", "events"}

// node is a node of a plan.
type node struct {
	Type         string  `json:"Node Type"`
	Relationship string  `json:"Parent Relationship"`
	Relation     string  `json:"Relation Name"`
	Index        string  `json:"Index Name"`
	IndexCond    string  `json:"Index Cond"`
	PageRange    string  `json:"TID Cond"`
	Filter       string  `json:"Filter"`
	Cost         float64 `json:"Total Cost"`
	Rows         float64 `json:"Plan Rows"`
	ActualRows   float64 `json:"Actual Rows"`
	Hit          int64   `json:"Shared Hit Blocks"`
	Read         int64   `json:"Shared Read Blocks"`
	Plans        []node
}

// broken returns a clause for each rule that the plan breaks, to follow the statement's name.
func broken(statement Statement, size int, plan node) []string {
	var says []string
	if cost, most := plan.cost(), cmp.Or(statement.MaxCost, maxCost); cost > most {
		says = append(says, fmt.Sprintf("is expected to cost %.0f, more than %.0f", cost, most))
	}
	for each := range plan.all() {
		switch each.Type {
		case "Hash Join", "Merge Join":
			if table := each.firstScan(anywhere); table != "" {
				says = append(says, fmt.Sprintf("reads %s for a %s", table, strings.ToLower(each.Type)))
			}
		case "Sort", "Incremental Sort":
			if table := each.firstScan(withoutLimit); table != "" && statement.Sorts == "" {
				says = append(says, fmt.Sprintf("sorts %s without a limit", table))
			}
			if each.locks() {
				says = append(says, "sorts rows that it has locked, also those that it will not return")
			}
		default:
			says = append(says, each.brokenScan(statement, size)...)
		}
	}
	return says
}

// brokenScan returns what is wrong with the way to a table that grows.
func (n node) brokenScan(statement Statement, size int) []string {
	if !n.scansGrowing() {
		return nil
	}
	if n.PageRange != "" && slices.ContainsFunc(statement.Pages, n.isPartOf) {
		return nil
	}
	ways := n.indexes()
	if len(ways) == 0 && n.cost() <= fewPages+lookUp*float64(size) {
		return nil
	}
	if len(ways) == 0 {
		return []string{"reads all of " + n.Relation}
	}
	var says []string
	for _, way := range ways {
		name := ofParent(way.Index)
		switch {
		case !slices.Contains(statement.Indexes, name):
			says = append(says, fmt.Sprintf("finds rows of %s by %s, which is not for it", n.Relation, way.Index))
		case way.IndexCond == "" && !slices.Contains(statement.Walks, name):
			says = append(says, fmt.Sprintf("walks all of %s", way.Index))
		}
	}
	return says
}

// cost is the expected cost, without what the server adds for what a setting forbids.
func (n node) cost() float64 {
	return math.Mod(n.Cost, disabledCost)
}

// all returns the node and every one below it.
func (n node) all() iter.Seq[node] {
	return func(yield func(node) bool) { n.visit(yield) }
}

func (n node) visit(yield func(node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, plan := range n.Plans {
		if !plan.visit(yield) {
			return false
		}
	}
	return true
}

// inputs are the nodes whose rows it works on, unlike subplans, which it asks for values.
func (n node) inputs() []node {
	return slices.DeleteFunc(slices.Clone(n.Plans), func(plan node) bool {
		return plan.Relationship == "InitPlan" || plan.Relationship == "SubPlan"
	})
}

func anywhere(node) bool       { return true }
func withoutLimit(n node) bool { return n.Type != "Limit" }

// firstScan returns a table that grows and is read for the node's input; "" for none. It looks
// below the nodes that through lets it.
func (n node) firstScan(through func(node) bool) string {
	for _, input := range n.inputs() {
		if input.scansGrowing() {
			return input.Relation
		}
		if through(input) {
			if table := input.firstScan(through); table != "" {
				return table
			}
		}
	}
	return ""
}

// locks tells whether rows of its input are locked.
func (n node) locks() bool {
	return slices.ContainsFunc(n.inputs(), func(input node) bool { return input.Type == "LockRows" || input.locks() })
}

func (n node) scansGrowing() bool {
	return strings.HasSuffix(n.Type, "Scan") && slices.ContainsFunc(grows, n.isPartOf)
}

// isPartOf tells whether it scans the table, or a day of it.
func (n node) isPartOf(table string) bool {
	return n.Relation == table || table == "inbox_archive" && strings.HasPrefix(n.Relation, table+"_")
}

// indexes are the nodes by which a scan finds its rows: itself, or those below a bitmap.
func (n node) indexes() []node {
	if n.Index != "" {
		return []node{n}
	}
	var found []node
	if n.Type == "Bitmap Heap Scan" {
		for each := range n.all() {
			if each.Type == "Bitmap Index Scan" {
				found = append(found, each)
			}
		}
	}
	return found
}

var archiveDay = regexp.MustCompile(`^inbox_archive_(\d{8}|default)_`)

// ofParent returns the index of the archive of which the one given is a day's.
func ofParent(index string) string {
	return archiveDay.ReplaceAllString(index, "inbox_archive_")
}

// outline writes the plan down, a line for each node.
func (n node) outline() string {
	var lines strings.Builder
	n.write(&lines, "")
	return lines.String()
}

func (n node) write(lines *strings.Builder, indent string) {
	fmt.Fprint(lines, indent, n.Type)
	for _, part := range [][2]string{{" on ", n.Relation}, {" by ", n.Index}, {" where ", n.IndexCond}, {" within ", n.PageRange}, {" filtered by ", n.Filter}} {
		if part[1] != "" {
			fmt.Fprint(lines, part[0], part[1])
		}
	}
	fmt.Fprintf(lines, ", %.0f rows, cost %.0f\n", n.Rows, n.Cost)
	for _, plan := range n.Plans {
		plan.write(lines, indent+"  ")
	}
}
