# Completion of holdfast(1) for bash 4.4 or later. `holdfast __complete' decides
# which words are offered; this file splits the line into words as a shell does,
# and quotes what is inserted. It does not need the package bash-completion,
# except to complete the arguments of other commands (holdfast run NAME
# COMMAND...).
# shellcheck shell=bash

# Sets _holdfast_words: the words up to the cursor, joined where bash has split
# them at a colon or an equals sign; and _holdfast_first: the index in
# COMP_WORDS at which each word begins.
_holdfast_split() {
    local line=$COMP_LINE i part n=-1
    _holdfast_words=()
    _holdfast_first=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        if ((n < 0)) || [[ $line == [[:space:]]* || -z $part ]]; then
            _holdfast_words[++n]=
            _holdfast_first[n]=$i
            line=${line#"${line%%[![:space:]]*}"}
        fi
        _holdfast_words[n]+=$part
        line=${line#"$part"}
    done
}

# Sets REPLY to a word without its quotes, and _holdfast_quote to the quote that
# is still open at its end. Expands nothing.
_holdfast_unquote() {
    local rest=$1 quote= char
    REPLY=
    while [[ -n $rest ]]; do
        char=${rest:0:1}
        rest=${rest:1}
        if [[ -z $quote && $char == \$ && $rest == \'* ]]; then
            quote=\$ rest=${rest:1}
        elif [[ -z $quote && $char == [\'\"] ]]; then
            quote=$char
        elif [[ $quote == "$char" && $char == [\'\"] || $quote$char == \$\' ]]; then
            quote=
        elif [[ $char == \\ && $quote == \$ ]]; then
            [[ $rest =~ ^([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.) ]]
            printf -v char '%b' "\\${BASH_REMATCH[0]/#[0-7]/0&}"
            [[ $rest == [\'\"?]* ]] && char=${rest:0:1}
            REPLY+=$char
            rest=${rest:${#BASH_REMATCH[0]}}
        elif [[ $char == \\ && ($quote != \' &&
            ($quote != \" || $rest == [\\\"\$\`]*)) ]]; then
            REPLY+=${rest:0:1}
            rest=${rest:1}
        else
            REPLY+=$char
        fi
    done
    _holdfast_quote=$quote
}

# Sets REPLY to a text as it must be typed after this quote.
_holdfast_enquote() {
    case $2 in
    \') REPLY=${1//\'/\'\\\'\'} ;;
    \")
        REPLY=${1//\\/\\\\}
        REPLY=${REPLY//\"/\\\"}
        REPLY=${REPLY//\$/\\\$}
        REPLY=${REPLY//\`/\\\`}
        ;;
    \$)
        printf -v REPLY '%q' "$1"$'\001' # forces the form $'...\001'
        REPLY=${REPLY#\$\'}
        REPLY=${REPLY%\\001\'}
        ;;
    *) printf -v REPLY '%q' "$1" ;;
    esac
}

_holdfast_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$2")
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
    fi
}

_holdfast() {
    local -a _holdfast_words _holdfast_first words offered
    local _holdfast_quote quote REPLY word head typed i
    COMPREPLY=()
    _holdfast_split
    for word in "${_holdfast_words[@]:1}"; do
        _holdfast_unquote "$word"
        words+=("$REPLY")
    done
    word=$REPLY quote=$_holdfast_quote
    mapfile -d '' -t offered < <("${1:-holdfast}" __complete -- "${words[@]}" 2>/dev/null)
    # Bash replaces the text after the last colon, equals sign or open quote, so
    # the text before it must not be inserted again.
    typed=${COMP_WORDS[COMP_CWORD]}
    [[ -z $quote && $typed == [=:]* ]] && typed=
    _holdfast_unquote "${_holdfast_words[-1]%"$typed"}"
    head=$REPLY
    if [[ -n $quote ]]; then
        case $typed in
        \$\'* | [\'\"]*) ;;
        *) return ;; # a quote within the word
        esac
    fi
    case ${offered[0]-} in
    words | part)
        [[ ${offered[0]} == part ]] && compopt -o nospace
        for ((i = 1; i < ${#offered[@]}; i += 2)); do
            _holdfast_enquote "${offered[i]#"$head"}" "$quote"
            COMPREPLY+=("$REPLY")
        done
        # With a single offered word, bash would close the quote.
        [[ ${offered[0]} == part && -n $quote && ${#COMPREPLY[@]} == 1 ]] &&
            COMPREPLY+=("${COMPREPLY[0]}...")
        ;;
    'files '*)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "${word:${offered[0]#files }}")
        ;;
    'command '*)
        _holdfast_command "${_holdfast_first[${offered[0]#command } + 1]}" "$word"
        ;;
    esac
}

complete -F _holdfast holdfast
