package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// frozen is what a file holds.
type frozen struct {
	Schema     int         `json:"schema"`
	Statements []statement `json:"statements"`
}

// statement is one that a program sends: what it puts into it, and what it takes the columns of
// the answer for, each as a name and a type of Go, and its text in lines, so that a person can
// compare two versions.
type statement struct {
	Name       string   `json:"name"`
	Parameters []string `json:"parameters,omitempty"`
	Results    []string `json:"results,omitempty"`
	SQL        []string `json:"sql"`
}

// code is what the files of gen/ declare.
type code struct {
	texts   map[string]string            // Of constants.
	structs map[string]map[string]string // The types of their fields.
}

// readStatements reads the code that sqlc has written.
func readStatements(sources []string) ([]statement, error) {
	declared := code{texts: map[string]string{}, structs: map[string]map[string]string{}}
	var methods []*ast.FuncDecl
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.GenDecl:
				declared.add(declaration)
			case *ast.FuncDecl:
				if declaration.Recv != nil && types.ExprString(declaration.Recv.List[0].Type) == "*Queries" {
					methods = append(methods, declaration)
				}
			}
		}
	}
	if len(methods) == 0 {
		return nil, errors.New("it has no methods")
	}
	statements := make([]statement, len(methods))
	for i, method := range methods {
		var err error
		if statements[i], err = declared.read(method); err != nil {
			return nil, fmt.Errorf("%s: %w", method.Name, err)
		}
	}
	slices.SortFunc(statements, func(a, b statement) int { return strings.Compare(a.Name, b.Name) })
	return statements, nil
}

func (c code) add(declaration *ast.GenDecl) {
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			if literal, ok := at(spec.Values, 0).(*ast.BasicLit); ok && literal.Kind == token.STRING {
				c.texts[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
		case *ast.TypeSpec:
			if structure, ok := spec.Type.(*ast.StructType); ok {
				c.structs[spec.Name.Name] = fields(structure.Fields)
			}
		}
	}
}

// read finds in a method the call that sends the statement, and the one that scans a row.
func (c code) read(method *ast.FuncDecl) (statement, error) {
	found := statement{Name: method.Name.Name}
	variables := fields(method.Type.Params)
	var err error
	ast.Inspect(method.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			variables[node.Names[0].Name] = types.ExprString(node.Type)
		case *ast.CallExpr:
			switch selector, _ := node.Fun.(*ast.SelectorExpr); {
			case selector == nil:
			case types.ExprString(selector.X) == "db":
				text := c.texts[types.ExprString(node.Args[1])]
				found.SQL = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				err = errors.Join(err, c.describe(&found.Parameters, node.Args[2:], variables))
			case selector.Sel.Name == "Scan":
				err = errors.Join(err, c.describe(&found.Results, node.Args, variables))
			}
		}
		return true
	})
	if len(found.SQL) == 0 || !strings.HasPrefix(found.SQL[0], "-- name: "+found.Name+" ") {
		return found, errors.New("its statement is not found")
	}
	return found, err
}

// describe adds the name and type of each expression: a variable, a field of one, or the
// address of either.
func (c code) describe(described *[]string, expressions []ast.Expr, variables map[string]string) error {
	for _, expression := range expressions {
		if address, ok := expression.(*ast.UnaryExpr); ok {
			expression = address.X
		}
		name := types.ExprString(expression)
		kind := variables[name]
		if field, ok := expression.(*ast.SelectorExpr); ok {
			name = field.Sel.Name
			kind = c.structs[variables[types.ExprString(field.X)]][name]
		}
		if kind == "" {
			return fmt.Errorf("the type of %s is not known", types.ExprString(expression))
		}
		*described = append(*described, name+" "+kind)
	}
	return nil
}

// fields returns the types of fields or parameters by name.
func fields(list *ast.FieldList) map[string]string {
	found := map[string]string{}
	for _, field := range list.List {
		for _, name := range field.Names {
			found[name.Name] = types.ExprString(field.Type)
		}
	}
	return found
}

func at(expressions []ast.Expr, i int) ast.Expr {
	if i < len(expressions) {
		return expressions[i]
	}
	return nil
}
