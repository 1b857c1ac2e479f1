# Runs one private server and cleans up after it, whatever becomes of the program that started it.
#
#   $1         the private directory, removed at the end and this file with it
#   $2         the folder that holds initdb and postgres
#   the rest   arguments for postgres
#
# Descriptor 3 is the reading end of a pipe. Only the program holds the writing end and nothing is ever
# written to it, so reading returns when the program closes it or ends, by whatever death.
#
# This shell leads a process group of its own: Ctrl-C at the terminal does not reach it, and "kill 0"
# means this shell, initdb and the postmaster. (The postmaster's children lead groups of their own and
# end with it.)

dir=$1
bin=$2
shift 2

# This shell must outlive the signals sent below. A signal that is caught, unlike one that is ignored,
# has its usual effect again in initdb and postgres.
trap : TERM QUIT

(
    trap '' TERM QUIT
    read -r _ <&3

    # TERM ends initdb. QUIT is the immediate shutdown of postgres, without a checkpoint, since the data
    # is thrown away. Sent again each second, because the first may fall between initdb and postgres, for
    # a minute, because a machine under load may take long to end them.
    left=60
    while [ "$left" -gt 0 ]; do
        kill -TERM 0
        kill -QUIT 0
        sleep 1
        left=$((left - 1))
    done
    rm -rf -- "$dir"
    kill -KILL 0
) &
reader=$!
exec 3<&-

{
    [ -d "$dir/data" ] || # A copy of another server's.
        "$bin/initdb" --pgdata="$dir/data" --username=holdfast --pwfile="$dir/password" --auth=scram-sha-256 \
            --encoding=UTF8 --locale=C --no-sync
} &&
    while
        "$bin/postgres" -D "$dir/data" "$@"
        [ -e "$dir/again" ] # The program wants it restarted.
    do
        # The program wants a copy of the data as it lies there meanwhile.
        [ ! -d "$dir/copy" ] || cp -R -- "$dir/data/." "$dir/copy"
        rm -f -- "$dir/again"
    done

# Removing the directory may take longer than the reader's patience, which would end it halfway.
kill -KILL "$reader"
rm -rf -- "$dir"

# Whatever initdb and postgres have left running, and this shell.
kill -KILL 0
