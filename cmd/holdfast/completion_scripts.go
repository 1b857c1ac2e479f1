package main

// shells are those that there is a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionScripts send the words up to the cursor to the program, the unfinished one last,
// and offer what it prints, a word a line. Where it prints nothing, they leave files to the
// shell.
var completionScripts = map[string]string{
	"bash": `# bash completion for holdfast: source <(holdfast completion bash)
_holdfast() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" "${COMP_WORDS[@]:1:COMP_CWORD}" ` + completionFlag + ` 2>/dev/null))
}
complete -o bashdefault -o default -F _holdfast holdfast
`,
	"zsh": `#compdef holdfast
# zsh completion for holdfast: source <(holdfast completion zsh)
_holdfast() {
    local -a candidates
    candidates=("${(@f)$("${words[1]}" "${(@)words[2,CURRENT]}" ` + completionFlag + ` 2>/dev/null)}")
    if [[ -n "${candidates[1]}" ]]; then
        compadd -- "${candidates[@]}"
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == "_holdfast" ]]; then
    _holdfast
else
    compdef _holdfast holdfast
fi
`,
	"fish": `# fish completion for holdfast: holdfast completion fish | source
function __holdfast_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    test -n "$current"; or set current ''
    command $words[1] $words[2..] $current ` + completionFlag + ` 2>/dev/null
end
complete -c holdfast -n 'test (count (__holdfast_complete)) -gt 0' -f -a '(__holdfast_complete)'
`,
	"powershell": `# PowerShell completion for holdfast: holdfast completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName holdfast -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    if ($wordToComplete -eq '') { $words += '""' }
    & $commandAst.CommandElements[0].ToString() @words ` + completionFlag + ` | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
`,
}
